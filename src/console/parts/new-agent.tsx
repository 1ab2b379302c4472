import { type Signal, useSignal } from '@preact/signals'
import type { TargetedEvent } from 'preact'
import type { ServiceClient, Zone } from '../../client/index.js'
import { Dialog } from './dialog.js'
import { explain } from './explain.js'
import { agentLink } from '../route.js'
import { zoneMeanings, zones } from './words.js'

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/

/** Makes an agent and goes to it. */
export function NewAgent({ service, close }: { service: ServiceClient; close: () => void }) {
  const name = useSignal('')
  const zone = useSignal<Zone>('governed')
  const problem = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const submit = async (event: TargetedEvent<HTMLFormElement, SubmitEvent>): Promise<void> => {
    event.preventDefault()
    if (!NAME.test(name.value)) {
      problem.value = 'Expected 1 to 128 of A-Z a-z 0-9 _ . - and neither . nor - at the beginning'
      return
    }
    busy.value = true
    try {
      const made = await service.createAgent(name.value, undefined, zone.value)
      close()
      location.hash = agentLink(made.agent_id)
    } catch (error) {
      problem.value = explain(error)
      busy.value = false
    }
  }
  return (
    <Dialog title="New agent" class="dialog" close={close}>
      <h2>New agent</h2>
      <form onSubmit={(event) => void submit(event)}>
        <label for="name">Name</label>
        <input
          id="name"
          autocomplete="off"
          spellcheck={false}
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value
          }}
          aria-describedby={problem.value === undefined ? undefined : 'name-problem'}
          aria-invalid={problem.value !== undefined}
        />
        {problem.value !== undefined && (
          <p id="name-problem" class="problem" role="alert">
            {problem.value}
          </p>
        )}
        <ZoneChoice zone={zone} />
        <p class="muted">Its key pair is made by the server and never leaves it.</p>
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy.value}>
            Make the agent
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function ZoneChoice({ zone }: { zone: Signal<Zone> }) {
  return (
    <fieldset>
      <legend>Zone: what may happen to records once they are written</legend>
      {zones.map((one) => (
        <label key={one} class="choice">
          <input
            type="radio"
            name="zone"
            checked={zone.value === one}
            onChange={() => {
              zone.value = one
            }}
          />
          <span>
            <strong>{one}</strong>
            <br />
            {zoneMeanings[one]}
          </span>
        </label>
      ))}
    </fieldset>
  )
}
