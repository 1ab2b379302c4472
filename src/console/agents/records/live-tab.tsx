import { useEffect, useRef } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { numberType, switchType, textType, useAddress } from '../../parts/address.js'
import { Field, Form, Problem } from '../../parts/field.js'
import { useChange } from '../../parts/load.js'
import { readStrandPart } from '../../parts/records/record-row.js'
import { TailButtons, TailRows, useTail } from '../../parts/records/tail-rows.js'
import type { Tail } from '../../parts/records/tail.js'
import { useRoving } from '../../parts/roving.js'
import { Button } from '../../parts/texts.js'

export function LiveTab({ service, status }: { service: ServiceClient; status: AgentStatusResponse }) {
  const { agent_id: agent } = status
  const [field] = useAddress('field', textType)
  const tail = useTail(service, agent, { field })
  const [isPretty, setPretty] = useAddress('pretty', switchType)
  return (
    <>
      <Controls service={service} status={status} tail={tail} isPretty={isPretty} setPretty={setPretty} />
      <TailRows tail={tail} name={`Live records of ${agent}`} isPretty={isPretty} />
    </>
  )
}

function Controls(props: {
  service: ServiceClient
  status: AgentStatusResponse
  tail: Tail
  isPretty: boolean
  setPretty: (isPretty: boolean) => void
}) {
  const { service, status, tail, isPretty, setPretty } = props
  const { agent_id: agent, record_count: headSeq } = status
  const [from, setFrom] = useAddress('from', typedSeqType)
  const { problem, run } = useChange()
  const begin = async (): Promise<void> => {
    const field = fieldInput.current?.value.trim() ?? ''
    if (from === undefined) return tail.begin({ since: undefined, field })
    const seq = Math.min(from, headSeq)
    const range = { fromSeq: seq, toSeq: seq, signal: AbortSignal.timeout(READ_MS) }
    const [row] = (await readStrandPart(service, agent, range)).rows
    tail.begin({ since: row?.hlc, field })
  }
  useEffect(() => {
    if (from !== undefined) void run(begin)
  }, [])
  const fieldInput = useRef<HTMLInputElement>(null)
  const tools = useRoving<HTMLFormElement>()
  return (
    <Form ref={tools} class="tools" submit={() => run(begin)}>
      <TailButtons tail={tail} isPretty={isPretty} setPretty={setPretty} fieldInput={fieldInput} />
      <Field
        type="number"
        name="From record"
        min={0}
        max={headSeq}
        step={1}
        placeholder="now"
        value={String(from ?? '')}
        set={(text) => setFrom(typedSeqType.read([text]))}
      />
      <Button text="Start there" type="submit" />
      <Problem text={problem} />
    </Form>
  )
}

const READ_MS = 30_000
const typedSeqType = { ...numberType, isStep: false }
