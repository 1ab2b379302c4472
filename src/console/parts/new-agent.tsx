import { useState } from 'preact/hooks'
import type { ServiceClient, Zone } from '../../client/index.js'
import { agentLink } from '../route.js'
import { Dialog } from './dialog.js'
import { useChange } from './load.js'
import { Button } from './texts.js'
import { Form, ZoneChoice, TextInput, Problem } from './field.js'

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/

/** A dialog that creates an agent and opens it. */
export function NewAgent({ service, close }: { service: ServiceClient; close: () => void }) {
  const [name, setName] = useState('')
  const [zone, setZone] = useState<Zone>('governed')
  const { isBusy, problem, setProblem, run } = useChange()
  const create = async (): Promise<void> => {
    const created = await service.createAgent(name, undefined, zone)
    close()
    location.hash = agentLink(created.agent_id)
  }
  return (
    <Dialog title="New agent" class="dialog" close={close}>
      <h2>New agent</h2>
      <Form
        submit={() => {
          if (NAME.test(name)) void run(create)
          else setProblem('Expected 1 to 128 characters of A-Z a-z 0-9 _ . -, the first neither . nor -')
        }}
      >
        <label for="name">Name</label>
        <TextInput
          id="name"
          value={name}
          set={setName}
          aria-describedby={problem === undefined ? undefined : 'name-problem'}
          aria-invalid={problem !== undefined}
        />
        <Problem id="name-problem" text={problem} />
        <ZoneChoice name="Zone: how written records can be changed" chosen={zone} set={setZone} />
        <p class="muted">
          The server generates the key pair of the agent and never discloses the secret key.
        </p>
        <div class="buttons">
          <Button text="Create agent" type="submit" class="primary" disabled={isBusy} />
          <Button text="Cancel" onClick={close} />
        </div>
      </Form>
    </Dialog>
  )
}
