import type { AccessibleAgents } from '../parts/accessible-agents.js'
import { switchType, useAddress } from '../parts/address.js'
import { Read, useLoaded } from '../parts/load.js'
import { Empty, Failure } from '../parts/texts.js'
import { SystemButton, TailRow, useTail } from '../parts/records/tail-rows.js'
import type { SignedIn } from '../parts/session.js'
import { type EarlierRow, readNewest, ROWS_SHOWN } from './read-overview.js'

/** The most agents of one stream (GET /v1/stream). */
const AGENTS_MAX = 1_000

/** The last records of all agents that the key can access, updated as they arrive. */
export function NewestRecords({ session, accessible }: { session: SignedIn; accessible: AccessibleAgents }) {
  const { service, who } = session
  const [showsSystem, setSystem] = useAddress('system', switchType)
  const read = useLoaded(`newest ${showsSystem}`, (signal) =>
    readNewest(service, accessible, { showsSystem, signal }),
  )
  return (
    <section class="newest">
      <div class="section-head">
        <h2>Last records</h2>
        <SystemButton isOn={showsSystem} set={setSystem} />
        <a href="#/live">Live view</a>
      </div>
      <Read of={read} what="the last records">
        {(earlier) =>
          accessible.statuses.length === 0 ? (
            <Empty title="No agents yet">
              The first write to an agent that this key can access creates it.
            </Empty>
          ) : (
            <Rows
              key={showsSystem}
              session={session}
              earlier={earlier}
              agents={who.agents.length === 0 ? undefined : namesOf(accessible)}
            />
          )
        }
      </Read>
    </section>
  )
}

/** The agents for a stream, which a limited key has to name. */
function namesOf({ statuses }: AccessibleAgents): string[] {
  return statuses.slice(0, AGENTS_MAX).map(({ agent_id: agent }) => agent)
}

function Rows(props: {
  session: SignedIn
  earlier: readonly EarlierRow[]
  agents: readonly string[] | undefined
}) {
  const { session, earlier, agents } = props
  // The stream starts at the newest record that was read, so that there is no gap.
  const tail = useTail(session.service, agents, { since: earlier[0]?.hlc })
  // The two newest blocks always have more rows than the page shows.
  const live = tail.blocks.value.slice(0, 2).flatMap(({ rows }) => rows)
  const liveKeys = new Set(live.map(keyOf))
  const rows = [...live, ...earlier.filter((row) => !liveKeys.has(keyOf(row)))].slice(0, ROWS_SHOWN)
  const state = tail.state.value
  return (
    <>
      {state.kind === 'refused' && <Failure message={state.message} />}
      {rows.length === 0 && <Empty title="No records yet">Records appear here as they are written.</Empty>}
      <ol
        class={rows.length === 0 ? 'live-rows none' : 'live-rows of-many'}
        aria-label="Last records"
        tabIndex={0}
      >
        {rows.map((row) => (
          <TailRow key={keyOf(row)} row={row} isPretty={false} ofMany />
        ))}
      </ol>
    </>
  )
}

function keyOf({ agent, seq }: { agent: string; seq: number }): string {
  return `${agent} ${seq}`
}
