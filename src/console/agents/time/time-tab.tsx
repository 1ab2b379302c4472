import { useId, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient } from '../../../client/index.js'
import { explain } from '../../parts/explain.js'
import { Moment, Problem } from '../../parts/field.js'
import { msOfField } from '../../parts/format.js'
import { Time } from '../../parts/texts.js'
import { DifferenceView } from './difference-view.js'
import { MomentView, type Place, useMoment } from './moment-view.js'
import { seqAt } from './moment.js'

/** What a field to the second leaves open. */
const REST_OF_SECOND_MS = 999
const READ_MS = 30_000

interface TimeProps {
  service: ServiceClient
  status: AgentStatusResponse
  reload: () => void
}

/** Where the handles of the agent looked at last stand, for whoever comes back from a record. */
let lastPlaces: { agent: string; place: Place; other: Place | undefined } | undefined

/** A strand as it was, at any of its records; with a second handle, what changed between two of them. */
export function TimeTab({ service, status, reload }: TimeProps) {
  const { agent_id: agent, record_count: headSeq } = status
  const [{ place, other }, setPlaces] = useState<{ place: Place; other: Place | undefined }>(() =>
    lastPlaces?.agent === agent
      ? lastPlaces
      : { place: { seq: headSeq, askedMs: undefined }, other: undefined },
  )
  const move = (places: { place: Place; other: Place | undefined }): void => {
    lastPlaces = { agent, ...places }
    setPlaces(places)
  }
  const handle = { service, agent, headSeq, reload }
  return (
    <div class="time">
      <p class="lead">
        The strand as it was when each of its records had just been written. Arrow keys go from record to
        record.
      </p>
      <Handle {...handle} name="As of" place={place} set={(to) => move({ place: to, other })} />
      {other !== undefined && (
        <Handle {...handle} name="Compared with" place={other} set={(to) => move({ place, other: to })} />
      )}
      <div class="buttons">
        <button
          type="button"
          aria-pressed={other !== undefined}
          onClick={() =>
            move({ place, other: other === undefined ? { seq: headSeq, askedMs: undefined } : undefined })
          }
        >
          Compare
        </button>
        <button type="button" class="quiet" onClick={reload}>
          Refresh
        </button>
      </div>
      {other === undefined ? (
        <One service={service} status={status} place={place} />
      ) : (
        <Two service={service} status={status} place={place} other={other} />
      )}
    </div>
  )
}

function One({ service, status, place }: Omit<TimeProps, 'reload'> & { place: Place }) {
  const moment = useMoment(service, status, place)
  return <MomentView name="The strand then" agent={status.agent_id} moment={moment} isListed />
}

function Two(props: Omit<TimeProps, 'reload'> & { place: Place; other: Place }) {
  const { service, status, place, other } = props
  const { agent_id: agent } = status
  const [earlier, later] = place.seq <= other.seq ? [place, other] : [other, place]
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
  /** Reads the state of the agent again. */
  reload: () => void
  name: string
  place: Place
  set: (place: Place) => void
}

/** One handle: a slider over the records, steps by one, and a field for a moment. */
function Handle(props: HandleProps) {
  const { headSeq, name, place, set } = props
  const { seq } = place
  const id = useId()
  const go = (to: number): void => set({ seq: to, askedMs: undefined })
  return (
    <div class="handle" role="group" aria-label={name}>
      <div class="handle-line">
        <label for={id}>{name}</label>
        <label class="handle-seq">
          Record
          <input
            type="number"
            min={0}
            max={headSeq}
            step={1}
            value={seq}
            onChange={(event) => {
              const typed = event.currentTarget.valueAsNumber
              if (Number.isInteger(typed)) go(Math.min(Math.max(0, typed), headSeq))
            }}
          />
        </label>
      </div>
      <div class="handle-line">
        <button type="button" aria-label="One record back" disabled={seq <= 0} onClick={() => go(seq - 1)}>
          ‹
        </button>
        <input
          id={id}
          type="range"
          min={0}
          max={headSeq}
          step={1}
          value={seq}
          aria-valuetext={`Record ${seq} of ${headSeq}`}
          onInput={(event) => go(Number(event.currentTarget.value))}
        />
        <button
          type="button"
          aria-label="One record on"
          disabled={seq >= headSeq}
          onClick={() => go(seq + 1)}
        >
          ›
        </button>
      </div>
      <TypedMoment {...props} />
    </div>
  )
}

function TypedMoment({ service, agent, headSeq, reload, set }: HandleProps) {
  const [text, setText] = useState('')
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [began, setBegan] = useState<number | undefined>(undefined)
  const turn = useRef(0)
  const go = async (): Promise<void> => {
    const typedMs = msOfField(text)
    turn.current += 1
    const own = turn.current
    setBegan(undefined)
    setProblem(typedMs === undefined ? 'Expected a day and a time' : undefined)
    if (typedMs === undefined) return
    const ms = typedMs + REST_OF_SECOND_MS
    try {
      const seq = await seqAt(service, agent, { ms, signal: AbortSignal.timeout(READ_MS) })
      if (turn.current !== own) return
      if (seq === undefined) return setBegan(typedMs)
      if (seq > headSeq) reload()
      set({ seq, askedMs: ms })
    } catch (error) {
      if (turn.current === own) setProblem(explain(error))
    }
  }
  return (
    <form
      class="tools"
      onSubmit={(event) => {
        event.preventDefault()
        void go()
      }}
    >
      <Moment name="A moment, in your time zone" value={text} set={setText} />
      <button type="submit">Go to the moment</button>
      <Problem
        text={
          began !== undefined && (
            <>
              There was no strand yet at <Time ms={began} />.
            </>
          )
        }
      />
      <Problem text={problem} />
    </form>
  )
}
