import { useState } from 'preact/hooks'
import type { ServiceClient, Zone } from '../../client/index.js'
import { agentLink } from '../route.js'
import { Dialog } from './dialog.js'
import { useChange } from './load.js'
import { ZoneChoice } from './zone-choice.js'

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/

/** Makes an agent and goes to it. */
export function NewAgent({ service, close }: { service: ServiceClient; close: () => void }) {
  const [name, setName] = useState('')
  const [zone, setZone] = useState<Zone>('governed')
  const { isBusy, problem, setProblem, run } = useChange()
  const make = async (): Promise<void> => {
    const made = await service.createAgent(name, undefined, zone)
    close()
    location.hash = agentLink(made.agent_id)
  }
  return (
    <Dialog title="New agent" class="dialog" close={close}>
      <h2>New agent</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (NAME.test(name)) void run(make)
          else setProblem('Expected 1 to 128 of A-Z a-z 0-9 _ . - and neither . nor - at the beginning')
        }}
      >
        <label for="name">Name</label>
        <input
          id="name"
          autocomplete="off"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          aria-describedby={problem === undefined ? undefined : 'name-problem'}
          aria-invalid={problem !== undefined}
        />
        {problem !== undefined && (
          <p id="name-problem" class="problem" role="alert">
            {problem}
          </p>
        )}
        <ZoneChoice
          name="Zone: what may happen to records once they are written"
          chosen={zone}
          set={setZone}
        />
        <p class="muted">Its key pair is made by the server and never leaves it.</p>
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>
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
