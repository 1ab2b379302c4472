import type { Reached } from '../parts/reached.js'
import { Read, useLoaded } from '../parts/load.js'
import { Empty, Failure } from '../parts/texts.js'
import { TailRow, useTail } from '../parts/records/tail-rows.js'
import type { SignedIn } from '../parts/session.js'
import { type EarlierRow, readNewest, ROWS_SHOWN } from './read-overview.js'

/** Agents that one stream can name (GET /v1/stream). */
const AGENTS_MAX = 1_000

/** The last records of all agents that the key reaches, as they come. */
export function NewestRecords({ session, reached }: { session: SignedIn; reached: Reached }) {
  const { service, who } = session
  const read = useLoaded('newest', (signal) => readNewest(service, reached, signal))
  return (
    <section class="newest">
      <div class="section-head">
        <h2>Last records</h2>
        <a href="#/live">All as they come</a>
      </div>
      <Read of={read} what="the last records">
        {(earlier) =>
          reached.statuses.length === 0 ? (
            <Empty title="None of this key’s agents is there yet">The first write makes one.</Empty>
          ) : (
            <Rows
              session={session}
              earlier={earlier}
              agents={who.agents.length === 0 ? undefined : namesOf(reached)}
            />
          )
        }
      </Read>
    </section>
  )
}

/** A key that is limited to agents has to name them for a stream. */
function namesOf({ statuses }: Reached): string[] {
  return statuses.slice(0, AGENTS_MAX).map(({ agent_id: agent }) => agent)
}

function Rows(props: {
  session: SignedIn
  earlier: readonly EarlierRow[]
  agents: readonly string[] | undefined
}) {
  const { session, earlier, agents } = props
  // From the newest that was read on, so that none between that and the stream is left out.
  const tail = useTail(session.service, agents, earlier[0]?.hlc)
  // Two blocks have more rows than are shown, however many come.
  const live = tail.blocks.value.slice(0, 2).flatMap(({ rows }) => rows)
  const seen = new Set(live.map(nameOf))
  const rows = [...live, ...earlier.filter((row) => !seen.has(nameOf(row)))].slice(0, ROWS_SHOWN)
  const state = tail.state.value
  return (
    <>
      {state.kind === 'refused' && <Failure message={state.message} />}
      {rows.length === 0 && <Empty title="Nothing was written yet">Records appear here as they come.</Empty>}
      <ol
        class={rows.length === 0 ? 'live-rows none' : 'live-rows of-many'}
        aria-label="Last records"
        tabIndex={0}
      >
        {rows.map((row) => (
          <TailRow key={nameOf(row)} row={row} isPretty={false} ofMany />
        ))}
      </ol>
    </>
  )
}

function nameOf({ agent, seq }: { agent: string; seq: number }): string {
  return `${agent} ${seq}`
}
