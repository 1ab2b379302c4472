import type { Zone } from '../../client/index.js'
import { zoneMeanings, zones } from './labels.js'

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
