import { useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { Form, Problem } from '../../parts/field.js'
import { findRecords, hashDigits } from '../../parts/records/record-row.js'
import { countText } from '../../parts/format.js'
import { useChange } from '../../parts/load.js'
import { agentLink } from '../../route.js'
import { Button } from '../../parts/texts.js'

/** Opens a record by its seq, or by its hash or the first digits of it, which can lead to another agent. */
export function GoTo(props: {
  service: ServiceClient
  status: AgentStatusResponse
  go: (seq: number) => void
}) {
  const { service, status, go } = props
  const { agent_id: agent, record_count: headSeq } = status
  const [text, setText] = useState('')
  const { isBusy, problem, run } = useChange()
  const open = async (): Promise<void> => {
    const digits = hashDigits(text)
    const isSeq = /^(0|[1-9][0-9]{0,14})$/.test(text.trim())
    if (isSeq && (digits === undefined || Number(text) <= headSeq)) return go(Number(text))
    if (digits === undefined) throw new Error(expected)
    const found = await findRecords(service, digits, AbortSignal.timeout(READ_MS))
    const own = found.filter((one) => one.agent === agent)
    const [record, another] = own.length > 0 ? own : found
    if (record === undefined) throw new Error(`No record has a hash that begins with ${digits}`)
    if (another !== undefined) throw new Error('Several records have these digits: enter more of the hash')
    if (record.agent === agent) go(record.seq)
    else location.hash = agentLink(record.agent, record.seq)
  }
  const expected = `Expected a number from 0 to ${headSeq}, or the first 8 or more digits of a hash`
  return (
    <Form
      class="go-to"
      submit={() => {
        if (text.trim() !== '') void run(open)
      }}
    >
      <label>
        <span class="hidden">Go to record, 0 to {countText(headSeq)}, or by its hash</span>
        <input
          placeholder={`0 to ${headSeq}, or a hash`}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <Button text="Go to record" type="submit" disabled={isBusy} />
      <Problem text={problem} />
    </Form>
  )
}

const READ_MS = 30_000
