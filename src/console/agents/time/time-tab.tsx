import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { type AddressType, useAddress } from '../../parts/address.js'
import { Form, Moment, Problem, useConfirmed } from '../../parts/field.js'
import { counted, countText, isoOf, lineText, msOfField, msOfIso } from '../../parts/format.js'
import { Button, Empty, Failure, LineFacts, Time } from '../../parts/texts.js'
import { type HandlePosition, MomentView, REST_MS, useMoment } from './moment-view.js'
import { type MomentRead, seqAt } from './moment.js'
import { useTask } from '../../parts/load.js'
import { FocusedResult, ProgressLine } from '../../parts/result.js'
import { agentLink } from '../../route.js'
import {
  type ChangeKind,
  changeKinds,
  type ChangeRecord,
  type Changes,
  type Difference,
  readDifference,
} from './difference.js'

/** A field has whole seconds; this extends a typed time to the end of its second. */
const REST_OF_SECOND_MS = 999
const READ_MS = 30_000

interface TimeProps {
  service: ServiceClient
  status: AgentStatusResponse
  reload: () => void
}

interface Handles {
  position: HandlePosition
  other: HandlePosition | undefined
}

/** One or two handles, each as the seq of a record, with the time that the user typed. */
const handlesType: AddressType<Handles | undefined> = {
  read(texts) {
    const [position, other] = texts.flatMap((text) => {
      const [seq = '', typed = ''] = text.split(' ')
      return /^(-1|[0-9]{1,15})$/.test(seq) ? [{ seq: Number(seq), typedMs: msOfIso(typed) }] : []
    })
    return position && { position, other }
  },
  write: (handles) =>
    [handles?.position, handles?.other].flatMap((handle) => {
      if (handle === undefined) return []
      return handle.typedMs === undefined ? [`${handle.seq}`] : [`${handle.seq} ${isoOf(handle.typedMs)}`]
    }),
  isStep: false,
}

/**
 * The handles in the address. A moving handle is written when it rests, because browsers limit how often a page
 * changes its address.
 */
function useHandles(headSeq: number): [Handles, (handles: Handles) => void] {
  const [shown, show] = useAddress('at', handlesType)
  const [moving, move] = useState<Handles | undefined>(undefined)
  useEffect(() => {
    if (moving === undefined) return undefined
    const timer = setTimeout(() => {
      show(moving)
      move(undefined)
    }, REST_MS)
    return () => clearTimeout(timer)
  }, [moving])
  const { position, other } = moving ??
    shown ?? { position: { seq: headSeq, typedMs: undefined }, other: undefined }
  return [{ position: within(position, headSeq), other: other && within(other, headSeq) }, move]
}

/** A strand as of any of its records; with a second handle, the changes between two records. */
export function TimeTab({ service, status, reload }: TimeProps) {
  const { agent_id: agent, record_count: headSeq } = status
  const [{ position, other }, move] = useHandles(headSeq)
  const handle = { service, agent, headSeq, reload }
  const empty = [position, other].find((one) => one !== undefined && one.seq < 0)
  return (
    <div class="time-tab">
      <p class="lead">
        The strand as of any of its records. Use the arrow keys to move from record to record.
      </p>
      <Handle {...handle} name="As of" position={position} set={(to) => move({ position: to, other })} />
      {other !== undefined && (
        <Handle
          {...handle}
          name="Compared with"
          position={other}
          set={(to) => move({ position, other: to })}
        />
      )}
      <div class="buttons">
        <Button
          text="Compare"
          aria-pressed={other !== undefined}
          onClick={() =>
            move({ position, other: other === undefined ? { seq: headSeq, typedMs: undefined } : undefined })
          }
        />
        <Button text="Refresh" class="quiet" onClick={reload} />
      </div>
      {empty !== undefined ? (
        <Nothing ms={empty.typedMs} />
      ) : other === undefined ? (
        <One service={service} status={status} position={position} />
      ) : (
        <Two service={service} status={status} position={position} other={other} />
      )}
    </div>
  )
}

/** What a moment before record 0 shows. */
function Nothing({ ms }: { ms: number | undefined }) {
  return (
    <div role="status">
      <Empty title="Nothing was recorded yet">
        The strand began later
        {ms !== undefined && (
          <>
            {' '}
            than <Time ms={ms} />
          </>
        )}
        .
      </Empty>
    </div>
  )
}

function One({ service, status, position }: Omit<TimeProps, 'reload'> & { position: HandlePosition }) {
  const moment = useMoment(service, status, position)
  const { agent_id: agent, imported_records: imported } = status
  return (
    <MomentView name="The strand at that time" agent={agent} moment={moment} isListed imported={imported} />
  )
}

function Two(props: Omit<TimeProps, 'reload'> & { position: HandlePosition; other: HandlePosition }) {
  const { service, status, position, other } = props
  const { agent_id: agent } = status
  const [earlier, later] = position.seq <= other.seq ? [position, other] : [other, position]
  const before = useMoment(service, status, earlier)
  const after = useMoment(service, status, later)
  const [from, to] = [before.shown, after.shown]
  const isAtRest = from?.seq === earlier.seq && to?.seq === later.seq
  return (
    <>
      <div class="moments">
        <div>
          <h2>Earlier</h2>
          <MomentView name="The strand earlier" agent={agent} moment={before} isListed={false} />
        </div>
        <div>
          <h2>Later</h2>
          <MomentView name="The strand later" agent={agent} moment={after} isListed={false} />
        </div>
      </div>
      {isAtRest && from !== undefined && to !== undefined && (
        <DifferenceView key={`${from.seq} ${to.seq}`} service={service} status={status} from={from} to={to} />
      )}
    </>
  )
}

interface HandleProps {
  service: ServiceClient
  agent: string
  headSeq: number
  /** Reads the status of the agent again. */
  reload: () => void
  name: string
  position: HandlePosition
  set: (position: HandlePosition) => void
}

/** A handle: a slider over the records, buttons for single steps, and a field for a time. */
function Handle(props: HandleProps) {
  const { headSeq, name, position, set } = props
  const { seq } = position
  const id = useId()
  const go = (to: number): void => set({ seq: to, typedMs: undefined })
  const seqField = useConfirmed(seq < 0 ? '' : String(seq), (typed) => {
    const wanted = typed === '' ? Number.NaN : Number(typed)
    if (Number.isInteger(wanted)) go(Math.min(Math.max(0, wanted), headSeq))
  })
  return (
    <div class="handle" role="group" aria-label={name}>
      <div class="handle-line">
        <label for={id}>{name}</label>
        <label class="handle-seq">
          Record
          <input type="number" min={0} max={headSeq} step={1} {...seqField} />
        </label>
      </div>
      <div class="handle-line">
        <Button text="‹" aria-label="Previous record" disabled={seq <= 0} onClick={() => go(seq - 1)} />
        <input
          id={id}
          type="range"
          min={0}
          max={headSeq}
          step={1}
          value={seq}
          aria-valuetext={seq < 0 ? 'Before record 0' : `Record ${seq} of ${headSeq}`}
          onInput={(event) => go(Number(event.currentTarget.value))}
        />
        <Button text="›" aria-label="Next record" disabled={seq >= headSeq} onClick={() => go(seq + 1)} />
      </div>
      <TypedMoment {...props} />
    </div>
  )
}

function TypedMoment({ service, agent, headSeq, reload, set }: HandleProps) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const attempts = useRef(0)
  const go = async (): Promise<void> => {
    const secondMs = msOfField(text)
    attempts.current += 1
    const own = attempts.current
    setProblem(secondMs === undefined ? 'Expected a date and a time' : undefined)
    if (secondMs === undefined) return
    const typedMs = secondMs + REST_OF_SECOND_MS
    try {
      const seq = await seqAt(service, agent, { ms: typedMs, signal: AbortSignal.timeout(READ_MS) })
      if (attempts.current !== own) return
      if (seq > headSeq) reload()
      set({ seq, typedMs })
    } catch (error) {
      if (attempts.current === own) setProblem(explain(error))
    }
  }
  return (
    <Form class="tools" submit={() => go()}>
      <Moment name="Time" value={text} set={setText} />
      <Button text="Go to this time" type="submit" />
      <Problem text={problem} />
    </Form>
  )
}

function within(handle: HandlePosition, headSeq: number): HandlePosition {
  return { ...handle, seq: Math.min(handle.seq, headSeq) }
}

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
function DifferenceView(props: {
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
