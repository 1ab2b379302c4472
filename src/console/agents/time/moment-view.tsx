import { useEffect, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient, Zone } from '../../../client/index.js'
import { LineFacts } from '../../parts/facts.js'
import { countText } from '../../parts/format.js'
import { type Loaded, useLoaded } from '../../parts/load.js'
import { Result } from '../../parts/result.js'
import { Failure, Hash, Loading, Time } from '../../parts/texts.js'
import { RecordTable } from '../../parts/records/record-table.js'
import { agentLink } from '../../route.js'
import { zoneMeanings } from '../../parts/words.js'
import { LISTED_RECORDS, type MomentCheck, type MomentRead, readMoment } from './moment.js'

/** Where a handle stands. */
export interface Place {
  seq: number
  /** The moment that was typed to come here, in Unix milliseconds. */
  askedMs: number | undefined
}

/** A handle that is being moved is not asked about before it rests this long. */
const REST_MS = 150

/** Reads the strand as of a handle once the handle rests; until then the one before stays. */
export function useMoment(
  service: ServiceClient,
  { agent_id: agent, strand, record_count: headSeq }: AgentStatusResponse,
  place: Place,
): { loaded: Loaded<MomentRead>; shown: MomentRead | undefined; reload: () => void } {
  const [rested, setRested] = useState(place)
  useEffect(() => {
    const timer = setTimeout(() => setRested(place), REST_MS)
    return () => clearTimeout(timer)
  }, [place])
  const { seq, askedMs } = rested
  const { loaded, reload } = useLoaded(`${agent} ${seq} ${headSeq} ${askedMs}`, (signal) =>
    readMoment({ service, agent, strand, seq, headSeq, askedMs, signal }),
  )
  const last = useRef<MomentRead | undefined>(undefined)
  if (loaded.kind === 'failed') last.current = undefined
  last.current = loaded.value ?? last.current
  return { loaded, shown: last.current, reload }
}

/** A strand as it was: how long it was, its end, its zone, and whether that was found to be so. */
export function MomentView(props: {
  name: string
  agent: string
  moment: ReturnType<typeof useMoment>
  /** Whether its records are listed. */
  isListed: boolean
}) {
  const { name, agent, moment, isListed } = props
  const { loaded, shown, reload } = moment
  const isStale = shown !== loaded.value
  return (
    <section class={isStale ? 'moment stale' : 'moment'} aria-label={name} aria-busy={isStale}>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {shown === undefined && loaded.kind === 'loading' && <Loading what="the strand as it was" />}
      {shown !== undefined && (
        <>
          <MomentFacts agent={agent} shown={shown} />
          <Result verdict={shown.check.verdict}>
            <details>
              <summary>What this proves, and what not</summary>
              <Proves check={shown.check} />
            </details>
          </Result>
          {isListed && <Rows agent={agent} shown={shown} />}
        </>
      )}
    </section>
  )
}

function MomentFacts({ agent, shown }: { agent: string; shown: MomentRead }) {
  const { seq, ms, nextMs, chainHead, zone } = shown
  return (
    <LineFacts
      facts={{
        Records: countText(seq),
        'Last of them': <a href={agentLink(agent, seq)}>Record {countText(seq)}</a>,
        From: <Time ms={ms} />,
        Until: nextMs === undefined ? 'now' : <Time ms={nextMs} />,
        Head: <Hash hex={chainHead} name="the head of then" />,
        Zone: <span title={isZone(zone) ? zoneMeanings[zone] : undefined}>{zone ?? 'none'}</span>,
      }}
    />
  )
}

function isZone(zone: string | null): zone is Zone {
  return zone !== null && zone in zoneMeanings
}

function Proves({ check: { verdict, isKeyTrusted, isHistoryRead, kept } }: { check: MomentCheck }) {
  return (
    <>
      {verdict.ok && (
        <ul>
          <li>
            The records listed are whole, and each leads to the next, up to the head. Their clocks put the
            moment between the last of them and the one behind it.
          </li>
          <li>
            The head is the last leaf of the tree that was signed, and nothing before it was changed since.
          </li>
          {isHistoryRead && (
            <li>
              The zone, and which records are marked as deleted, are what the signed records tell: all of them
              were read.
            </li>
          )}
          {kept !== undefined && (
            <li>
              It fits the strand that this browser checked whole <Time ms={kept.checkedAtMs} />.
            </li>
          )}
          <li>
            {isKeyTrusted
              ? 'It is signed by the key that you trust, or by one that this key has named.'
              : 'It relies on the key that this server names. Name the one that you trust on the tab Proof.'}
          </li>
        </ul>
      )}
      <p class="muted">
        {!isHistoryRead &&
          'Not proved: the zone, and which records are marked as deleted, are what the server says. They follow from signed records before those that are listed, which Compare reads. '}
        The clocks are the server’s own.
      </p>
    </>
  )
}

function Rows({ agent, shown: { seq, rows } }: { agent: string; shown: MomentRead }) {
  return (
    <>
      <RecordTable agent={agent} rows={rows} columns={[]} />
      <p class="muted">
        {seq >= LISTED_RECORDS &&
          `The last ${LISTED_RECORDS} records of then. Move the handle back for earlier ones. `}
        A body that was erased since is gone here too.
      </p>
    </>
  )
}
