import { useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { counted, countText, lineText } from '../../parts/format.js'
import { useTask } from '../../parts/load.js'
import { FocusedResult, ProgressLine } from '../../parts/result.js'
import { Button, Failure, LineFacts, Time } from '../../parts/texts.js'
import { agentLink } from '../../route.js'
import {
  type ChangeRecord,
  type ChangeKind,
  changeKinds,
  type Changes,
  type Difference,
  readDifference,
} from './difference.js'
import type { MomentRead } from './moment.js'

const kindNames: Record<ChangeKind, string> = {
  added: 'Added',
  deleted: 'Deleted',
  restored: 'Restored',
  erased: 'Erased',
  'of the agent': 'Zone, rules and key',
  'of edges': 'Edges',
  steps: 'Proposals and other records',
}

/** The changes between two moments, derived from the records between them. */
export function DifferenceView(props: {
  service: ServiceClient
  status: AgentStatusResponse
  from: MomentRead
  to: MomentRead
}) {
  const { status, from, to } = props
  const { found, records, problem, read, cancel } = useDifference(props)
  const size = to.seq - from.seq
  if (size === 0) {
    return <p class="notice">Both handles are at the same record. Move one of them to see what changed.</p>
  }
  return (
    <section class="difference" aria-label="What changed">
      <h2>What changed</h2>
      <div class="buttons">
        <button type="button" class="primary" disabled={records !== undefined} onClick={() => void read()}>
          Read the {counted(size, 'record')} in between
        </button>
        {records !== undefined && <Button text="Cancel" onClick={cancel} />}
      </div>
      {records !== undefined && <ProgressLine name="Records read" done={records} of={size} />}
      {problem !== undefined && <Failure message={problem} />}
      <FocusedResult verdict={found?.verdict} />
      {found !== undefined && (
        <>
          <LineFacts
            facts={Object.fromEntries(
              changeKinds.map((kind) => [kindNames[kind], countText(found.changes[kind].count)]),
            )}
          />
          {changeKinds.map((kind) => (
            <ChangeList key={kind} agent={status.agent_id} kind={kind} changes={found.changes[kind]} />
          ))}
        </>
      )}
    </section>
  )
}

function useDifference({ service, status, from, to }: Parameters<typeof DifferenceView>[0]) {
  const [found, setFound] = useState<Difference | undefined>(undefined)
  const [records, setRecords] = useState<number | undefined>(undefined)
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const { begin, stop } = useTask()
  const read = async (): Promise<void> => {
    const signal = begin()
    setFound(undefined)
    setProblem(undefined)
    setRecords(0)
    const { agent_id: agent, strand } = status
    try {
      setFound(await readDifference({ service, agent, strand, from, to, onProgress: setRecords, signal }))
    } catch (error) {
      setProblem(signal.aborted ? 'Stopped. No result is shown' : explain(error))
    }
    setRecords(undefined)
  }
  return { found, records, problem, read, cancel: stop }
}

function ChangeList(props: { agent: string; kind: ChangeKind; changes: Changes }) {
  const { agent, kind, changes } = props
  const { count, newest } = changes
  if (count === 0) return null
  return (
    <>
      <h3>{kindNames[kind]}</h3>
      {count > newest.length && <p class="muted">Only the last {countText(newest.length)} are shown.</p>}
      <ol class="signed-steps" aria-label={kindNames[kind]}>
        {newest.toReversed().map((change) => (
          <li key={change.row.seq}>
            <span>
              <ChangeText agent={agent} change={change} />
            </span>
            <Time ms={change.row.ms} />
            <a href={agentLink(agent, change.row.seq)}>
              {change.target === undefined ? 'Record' : 'By record'} {countText(change.row.seq)}
            </a>
          </li>
        ))}
      </ol>
    </>
  )
}

function ChangeText({ agent, change: { row, target } }: { agent: string; change: ChangeRecord }) {
  if (target !== undefined) return <a href={agentLink(agent, target)}>Record {countText(target)}</a>
  return (
    <>
      <code>{row.type}</code>{' '}
      <code class="muted">{row.body === undefined ? row.state : lineText(row.body)}</code>
    </>
  )
}
