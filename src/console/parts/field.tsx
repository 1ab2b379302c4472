import type {
  ComponentChildren,
  FormHTMLAttributes,
  PartialInputHTMLAttributes,
  SelectHTMLAttributes,
} from 'preact'
import { useId, useState } from 'preact/hooks'
import { timeZoneText } from './format.js'
import type { Zone } from '../../client/index.js'
import { zoneMeanings, zones } from './labels.js'

/** A form whose submission does not leave the page. */
export function Form(props: FormHTMLAttributes<HTMLFormElement> & { submit: () => Promise<void> | void }) {
  const { submit, ...more } = props
  return (
    <form
      {...more}
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    />
  )
}

type InputProps = Omit<PartialInputHTMLAttributes<HTMLInputElement>, 'role' | 'type'> & {
  type?: 'text' | 'search' | 'number' | 'datetime-local'
  /** The id of a datalist with suggestions. */
  list?: string
}

/** A text input, without the browser's completion and spell check. */
export function TextInput(props: InputProps & { set?: (typed: string) => void }) {
  const { set, type = 'text', ...more } = props
  const onInput = ({ currentTarget }: TypedEvent): void => set?.(currentTarget.value)
  return <input autocomplete="off" spellcheck={false} onInput={onInput} {...more} type={type} />
}

/** A single-line field for names and ids. */
export function Field(
  props: Omit<InputProps, 'name'> & { name: ComponentChildren; set: (typed: string) => void },
) {
  const { name, ...more } = props
  return (
    <label class="field">
      {name}
      <TextInput autocapitalize="none" {...more} />
    </label>
  )
}

/**
 * The properties of an input whose text takes effect when it is confirmed by Enter or by leaving it. Until then
 * the text stays, even if the page is rendered again.
 */
export function useConfirmed(value: string, confirm: (typed: string) => void) {
  const [typed, setTyped] = useState<string>()
  return {
    value: typed ?? value,
    onInput: (event: TypedEvent) => setTyped(event.currentTarget.value),
    onChange: (event: TypedEvent) => {
      setTyped(undefined)
      confirm(event.currentTarget.value)
    },
  }
}

interface TypedEvent {
  currentTarget: { value: string }
}

/** A field for a time in the chosen time zone, which `msOfField` parses. */
export function Moment(props: { name: string; value: string; set: (value: string) => void }) {
  return <Field {...props} name={`${props.name} (${timeZoneText()})`} type="datetime-local" step={1} />
}

/** A select element. `options` maps values to their labels. */
export function Select(
  props: SelectHTMLAttributes<HTMLSelectElement> & {
    options: Readonly<Record<string, string>>
    set: (value: string) => void
  },
) {
  const { options, set, ...more } = props
  return (
    <select {...more} onChange={(event) => set(event.currentTarget.value)}>
      {Object.entries(options).map(([option, label]) => (
        <option key={option} value={option}>
          {label}
        </option>
      ))}
    </select>
  )
}

/** A select element with a label. */
export function Choice({ name, ...select }: Parameters<typeof Select>[0] & { name: string }) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <Select id={id} {...select} />
    </div>
  )
}

/** The options of a select element whose values are their labels. */
export function sameLabels(values: readonly string[]): Record<string, string> {
  return Object.fromEntries(values.map((value) => [value, value]))
}

export function Tick(props: { isOn: boolean; set: (isOn: boolean) => void; children: ComponentChildren }) {
  const { isOn, set, children } = props
  return (
    <label class="tick">
      <input type="checkbox" checked={isOn} onChange={(event) => set(event.currentTarget.checked)} />
      {children}
    </label>
  )
}

/** An error message of a form; nothing without a text. */
export function Problem({ id, text }: { id?: string; text: ComponentChildren }) {
  if (text === undefined || text === false) return null
  return (
    <p id={id} class="problem" role="alert">
      {text}
    </p>
  )
}

/** Radio buttons for the zones, each with its meaning. */
export function ZoneChoice(props: {
  name: string
  chosen: Zone
  /** The current zone; undefined for a new agent. */
  now?: Zone
  set: (zone: Zone) => void
}) {
  const { name, chosen, now, set } = props
  return (
    <fieldset>
      <legend>{name}</legend>
      {zones.map((one) => (
        <label key={one} class="choice">
          <input type="radio" name="zone" checked={chosen === one} onChange={() => set(one)} />
          <span>
            <strong>{one}</strong>
            {one === now && ' (current)'}
            <br />
            {zoneMeanings[one]}
          </span>
        </label>
      ))}
    </fieldset>
  )
}
