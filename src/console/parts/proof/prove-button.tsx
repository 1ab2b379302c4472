import { useState } from 'preact/hooks'
import type { ServiceClient } from '../../../client/index.js'
import type { ReadRecord } from '../../../proof/record.js'
import { explain } from '../explain.js'
import { fails, FocusedResult, type Verdict } from '../result.js'
import { agentLink } from '../../route.js'
import { proveRecord, type Step } from './prove-record.js'
import { Button } from '../texts.js'
import { shortHash } from '../format.js'

export interface Provable {
  agent: string
  strand: string
  seq: number
  record: ReadRecord
}

/** A button that proves a record, and the steps of the proof as they are computed. */
export function ProveButton(props: { service: ServiceClient; provable: Provable; name: 'Prove' | 'Verify' }) {
  const { service, provable, name } = props
  const { agent, strand, seq, record } = provable
  const [steps, setSteps] = useState<readonly Step[]>([])
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const prove = async (): Promise<void> => {
    setBusy(true)
    setSteps([])
    setVerdict(undefined)
    try {
      // The current key signs the checkpoint, and may be newer than the list.
      const { public_key: publicKey } = await service.agent(agent).status()
      const fetchProof = (hash: string) => service.proof(agent, hash)
      const material = { agent, seq, strand, record, fetchProof, publicKey }
      setVerdict(await proveRecord(material, (step) => setSteps((before) => [...before, step])))
    } catch (error) {
      setVerdict(fails(`record ${seq} of ${agent}: ${explain(error)}`))
    }
    setBusy(false)
  }
  return (
    <>
      <Button text={name} class="primary" disabled={isBusy} onClick={() => void prove()} />
      <FocusedResult verdict={verdict}>
        {verdict?.outcome === 'consistent' && (
          <p>
            This proof relies on the key that the server reports. To use a key that you know from another
            source, <a href={agentLink(agent, 'proof')}>check the whole strand</a>.
          </p>
        )}
      </FocusedResult>
      <Steps steps={steps} />
    </>
  )
}

const marks: Record<Step['outcome'], { sign: string; word: string }> = {
  holds: { sign: '✓', word: 'Holds' },
  fails: { sign: '✗', word: 'Fails' },
  noted: { sign: '·', word: 'Noted' },
}

export function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <ol class="steps">
      {steps.map(({ outcome, title, how, result }, at) => (
        // Steps are only appended.
        <li key={at} class={outcome} style={{ '--at': String(at) }}>
          <span class="sign" aria-hidden="true">
            {marks[outcome].sign}
          </span>
          <div>
            <p class="step-title">
              <span class="hidden">{marks[outcome].word}: </span>
              {title}
            </p>
            <p class="step-how">
              <code>{how.replace(/\b[0-9a-f]{64}\b/g, shortHash)}</code>
              {result !== undefined && (
                <>
                  {' = '}
                  <code class="result" title={result}>
                    {shortHash(result)}
                  </code>
                </>
              )}
            </p>
          </div>
        </li>
      ))}
    </ol>
  )
}
