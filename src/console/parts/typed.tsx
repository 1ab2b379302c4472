/** A field to be filled with a text that is shown, before something that cannot be undone. */
export function TypedConfirmation(props: {
  /** What has to be typed. */
  wanted: string
  /** What it is, as `the last 8 digits of the hash`. */
  what: string
  typed: string
  set: (typed: string) => void
}) {
  const { wanted, what, typed, set } = props
  return (
    <label class="field typed">
      <span>
        To confirm, type {what}: <code>{wanted}</code>
      </span>
      <input
        class="long-input"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        value={typed}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  )
}
