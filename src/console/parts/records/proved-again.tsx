import { useEffect, useState } from 'preact/hooks'
import type { ServiceClient } from '../../../client/index.js'
import { explain } from '../explain.js'
import { Result, type Verdict } from '../result.js'
import { type Step, proveRecord } from '../proof/prove-record.js'
import { Steps } from '../proof/steps.js'
import { readStrandPart } from './record-row.js'

/** Proves a record from what the server has of it now, as soon as it is shown. */
export function ProvedAgain({ service, agent, seq }: { service: ServiceClient; agent: string; seq: number }) {
  const [steps, setSteps] = useState<readonly Step[]>([])
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const onStep = (step: Step): void => {
      if (!signal.aborted) setSteps((before) => [...before, step])
    }
    prove({ service, agent, seq, signal }, onStep).then(
      (found) => {
        if (!signal.aborted) setVerdict(found)
      },
      (error: unknown) => {
        if (!signal.aborted)
          setVerdict({ ok: false, text: `Not verified: record ${seq} of ${agent}: ${explain(error)}` })
      },
    )
    return () => controller.abort()
  }, [service, agent, seq])
  return (
    <>
      <p>Its proof without the body, computed again by this browser:</p>
      <Result verdict={verdict} />
      <Steps steps={steps} />
    </>
  )
}

async function prove(
  what: { service: ServiceClient; agent: string; seq: number; signal: AbortSignal },
  onStep: (step: Step) => void,
): Promise<Verdict> {
  const { service, agent, seq, signal } = what
  const { strand, public_key: publicKey } = await service.agent(agent).status({ signal })
  const { records } = await readStrandPart(service, agent, { fromSeq: seq, toSeq: seq, signal })
  const [record] = records
  if (record === undefined)
    return { ok: false, text: `Not verified: record ${seq} of ${agent}: the server does not send it` }
  const askForPath = (hash: string) => service.proof(agent, hash, { signal })
  return proveRecord({ agent, seq, strand, record, askForPath, publicKey }, onStep)
}
