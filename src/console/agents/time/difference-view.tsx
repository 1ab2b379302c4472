import { useEffect, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { counted, countText, lineText } from '../../parts/format.js'
import { Result } from '../../parts/result.js'
import { Failure, Time } from '../../parts/texts.js'
import { agentLink } from '../../route.js'
import {
  type Change,
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
  steps: 'Proposals and others',
}

/** What happened between two moments, read from the records between them. */
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
          Read the {counted(size, 'record')} between
        </button>
        {records !== undefined && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
      {records !== undefined && (
        <div class="progress">
          <progress aria-label="Records read" max={size} value={records} />
        </div>
      )}
      {problem !== undefined && <Failure message={problem} />}
      <Result verdict={found?.verdict} />
      {found !== undefined && (
        <>
          <dl class="line-facts">
            {changeKinds.map((kind) => (
              <div key={kind}>
                <dt>{kindNames[kind]}</dt>
                <dd>{countText(found.changes[kind].count)}</dd>
              </div>
            ))}
          </dl>
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
  const running = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => running.current?.abort(), [])
  const read = async (): Promise<void> => {
    const controller = new AbortController()
    const { signal } = controller
    running.current = controller
    setFound(undefined)
    setProblem(undefined)
    setRecords(0)
    const { agent_id: agent, strand } = status
    try {
      setFound(await readDifference({ service, agent, strand, from, to, onProgress: setRecords, signal }))
    } catch (error) {
      setProblem(signal.aborted ? 'Stopped. Nothing is shown of what was read' : explain(error))
    }
    setRecords(undefined)
  }
  return { found, records, problem, read, cancel: () => running.current?.abort() }
}

function ChangeList(props: { agent: string; kind: ChangeKind; changes: Changes }) {
  const { agent, kind, changes } = props
  const { count, newest } = changes
  if (count === 0) return null
  return (
    <>
      <h3>{kindNames[kind]}</h3>
      {count > newest.length && <p class="muted">The last {countText(newest.length)} of them.</p>}
      <ol class="signed-steps" aria-label={kindNames[kind]}>
        {newest.toReversed().map((change) => (
          <li key={change.row.seq}>
            <span>
              <What agent={agent} change={change} />
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

/** The record that a change is about, or what the record of the change says itself. */
function What({ agent, change: { row, target } }: { agent: string; change: Change }) {
  if (target !== undefined) return <a href={agentLink(agent, target)}>Record {countText(target)}</a>
  return (
    <>
      <code>{row.type}</code>{' '}
      <code class="muted">{row.body === undefined ? row.state : lineText(row.body)}</code>
    </>
  )
}
