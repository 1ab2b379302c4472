import { useId } from 'preact/hooks'

/** One of some choices, each with its words. */
export function Choice(props: {
  name: string
  value: string
  options: Readonly<Record<string, string>>
  set: (value: string) => void
}) {
  const { name, value, options, set } = props
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
        {Object.entries(options).map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </div>
  )
}
