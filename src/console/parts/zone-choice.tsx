import type { Zone } from '../../client/index.js'
import { zoneMeanings, zones } from './words.js'

/** One of the zones, each with what it means. */
export function ZoneChoice(props: {
  name: string
  chosen: Zone
  /** The zone in force, where there is one. */
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
            {one === now && ' (now)'}
            <br />
            {zoneMeanings[one]}
          </span>
        </label>
      ))}
    </fieldset>
  )
}
