import { useEffect, useRef, useState } from 'preact/hooks'
import type { AgentStatusResponse, ServiceClient, Zone } from '../../../client/index.js'
import { countText } from '../../parts/format.js'
import { type Loaded, useLoaded } from '../../parts/load.js'
import { Result } from '../../parts/result.js'
import { Failure, Hash, LineFacts, Loading, Time } from '../../parts/texts.js'
import { RecordTable } from '../../parts/records/record-table.js'
import { agentLink } from '../../route.js'
import { zoneMeanings } from '../../parts/labels.js'
import { LISTED_RECORDS, type MomentCheck, type MomentRead, readMoment } from './moment.js'

export interface HandlePosition {
  /** The last record of the moment; -1 before record 0. */
  seq: number
  /** The time that the user typed, in Unix milliseconds; undefined if the user chose a record. */
  typedMs: number | undefined
}

/** A moving handle causes a request only after it has rested this long. */
export const REST_MS = 150

/**
 * Reads the strand at a handle's position after the handle has rested; until then the previous moment stays
 * visible.
 */
export function useMoment(
  service: ServiceClient,
  { agent_id: agent, strand, record_count: headSeq }: AgentStatusResponse,
  position: HandlePosition,
): { loaded: Loaded<MomentRead>; shown: MomentRead | undefined; reload: () => void } {
  const [rested, setRested] = useState(position)
  useEffect(() => {
    const timer = setTimeout(() => setRested(position), REST_MS)
    return () => clearTimeout(timer)
  }, [position.seq, position.typedMs])
  const { seq, typedMs } = rested
  const { loaded, reload } = useLoaded(`${agent} ${seq} ${headSeq} ${typedMs}`, (signal) =>
    readMoment({ service, agent, strand, seq, headSeq, typedMs, signal }),
  )
  const last = useRef<MomentRead | undefined>(undefined)
  if (loaded.kind === 'failed') last.current = undefined
  last.current = loaded.value ?? last.current
  return { loaded, shown: last.current, reload }
}

/** A strand at a moment: its size, its head, its zone, and the verdict of the check. */
export function MomentView(props: {
  name: string
  agent: string
  moment: ReturnType<typeof useMoment>
  isListed: boolean
  /** How many of the first records of the strand were imported. */
  imported?: number
}) {
  const { name, agent, moment, isListed, imported } = props
  const { loaded, shown, reload } = moment
  const isStale = shown !== loaded.value
  return (
    <section class={isStale ? 'moment stale' : 'moment'} aria-label={name} aria-busy={isStale}>
      {loaded.kind === 'failed' && <Failure message={loaded.message} retry={reload} />}
      {shown === undefined && loaded.kind === 'loading' && <Loading what="the strand at that time" />}
      {shown !== undefined && (
        <>
          <MomentFacts agent={agent} shown={shown} />
          <Result verdict={shown.check.verdict}>
            <details>
              <summary>What this proves and what it does not prove</summary>
              <ProofScope check={shown.check} />
            </details>
          </Result>
          {isListed && <Rows agent={agent} shown={shown} imported={imported} />}
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
        Records: `${countText(seq)} and the genesis`,
        'Last record': <a href={agentLink(agent, seq)}>Record {countText(seq)}</a>,
        From: <Time ms={ms} />,
        Until: nextMs === undefined ? 'now' : <Time ms={nextMs} />,
        Head: <Hash hex={chainHead} name="the head at that time" />,
        Zone: <span title={isZone(zone) ? zoneMeanings[zone] : undefined}>{zone ?? 'none'}</span>,
      }}
    />
  )
}

function isZone(zone: string | null): zone is Zone {
  return zone !== null && zone in zoneMeanings
}

function ProofScope({ check: { verdict, isHistoryRead, kept } }: { check: MomentCheck }) {
  return (
    <>
      {verdict.outcome !== 'failed' && (
        <ul>
          <li>
            The listed records are complete and linked up to the head. According to their clocks, the moment
            is between the last of them and the next record.
          </li>
          <li>The head is the last leaf of the signed tree, and no record before it was changed since.</li>
          {isHistoryRead && (
            <li>The zone and the deletions follow from the signed records, all of which were read.</li>
          )}
          {kept !== undefined && (
            <li>
              It matches the strand that this browser checked on <Time ms={kept.checkedAtMs} />.
            </li>
          )}
          <li>
            {verdict.outcome === 'verified'
              ? 'It is signed with the key that you trust, or with a successor that this key signed.'
              : 'It relies on the key that this server reports. Enter the key that you trust on the tab Proof.'}
          </li>
        </ul>
      )}
      <p class="muted">
        {!isHistoryRead &&
          'Not proved: the zone and the deletions, which the server reports. They follow from signed records before the listed ones; Compare reads those. '}
        The server’s clock sets all times.
      </p>
    </>
  )
}

function Rows(props: { agent: string; shown: MomentRead; imported: number | undefined }) {
  const {
    agent,
    shown: { seq, rows },
    imported,
  } = props
  return (
    <>
      <RecordTable agent={agent} rows={rows} columns={[]} {...(imported !== undefined && { imported })} />
      <p class="muted">
        {seq >= LISTED_RECORDS &&
          `These are the last ${LISTED_RECORDS} records at that time. Move the handle back for earlier records. `}
        Bodies that were erased later are missing here too.
      </p>
    </>
  )
}
