import type { NucleotideRecord, ServerInfoResponse, ServiceClient } from '../../client/index.js'
import { type Reached, readReached } from '../parts/reached.js'
import { msOf } from '../parts/format.js'
import type { LiveRow } from '../parts/records/tail.js'
import { may, seesServer, type WhoAmI } from '../parts/session.js'

/** Agents whose records are counted. */
export const AGENTS_COUNTED = 1_000
const PROPOSALS_COUNTED = 1_000
/** Agents of a limited key that are asked for their proposals. */
const AGENTS_ASKED = 20
/** Records that the page shows. */
export const ROWS_SHOWN = 20

/** How many there are, and whether there may be more. */
interface Counted {
  count: number
  isCut: boolean
}

/** What the page shows besides the metrics; absent is what the key may not see. */
export interface Overview {
  reached: Reached | undefined
  proposals: Counted | undefined
  server: ServerInfoResponse | undefined
}

/** Reads what the key may see. */
export async function readOverview(
  service: ServiceClient,
  who: WhoAmI,
  signal: AbortSignal,
): Promise<Overview> {
  const [reached, server] = await Promise.all([
    may(who, 'records:read') ? readReached(service, who, { most: AGENTS_COUNTED, signal }) : undefined,
    seesServer(who) ? service.server({ signal }) : undefined,
  ])
  const proposals = may(who, 'proposals:decide')
    ? await countProposals(service, agentsAsked(who, reached), signal)
    : undefined
  return { reached, proposals, server }
}

/** A key that is limited to agents is told about proposals agent by agent. */
function agentsAsked({ agents }: WhoAmI, reached: Reached | undefined): readonly (string | undefined)[] {
  if (agents.length === 0) return [undefined]
  return reached?.statuses.map(({ agent_id: agent }) => agent) ?? agents.filter((name) => !name.endsWith('*'))
}

async function countProposals(
  service: ServiceClient,
  agents: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<Counted> {
  const pages = await Promise.all(
    agents
      .slice(0, AGENTS_ASKED)
      .map((agent) => service.proposals.list({ agent, state: 'proposed', limit: PROPOSALS_COUNTED, signal })),
  )
  return {
    count: pages.reduce((sum, { proposals }) => sum + proposals.length, 0),
    isCut: agents.length > AGENTS_ASKED || pages.some(({ next_cursor: next }) => next !== null),
  }
}

/** A record that was there before the page was opened. */
export interface EarlierRow extends Omit<LiveRow, 'id'> {
  hlc: string
}

/** The newest records of these agents, the newest first: they are among those that were last written to. */
export async function readNewest(
  service: ServiceClient,
  { statuses }: Reached,
  signal: AbortSignal,
): Promise<EarlierRow[]> {
  const written = statuses
    .filter(({ record_count: count }) => count > 0)
    .sort((one, other) => (one.timestamp_hlc < other.timestamp_hlc ? 1 : -1))
    .slice(0, ROWS_SHOWN)
  const lists = await Promise.all(
    written.map(async ({ agent_id: agent }) => {
      const { records } = await service.agent(agent).latest(ROWS_SHOWN, { signal })
      return records.map((record) => rowOf(agent, record))
    }),
  )
  return lists
    .flat()
    .sort((one, other) => (one.hlc < other.hlc ? 1 : -1))
    .slice(0, ROWS_SHOWN)
}

function rowOf(agent: string, { seq, type, timestamp_hlc: hlc, payload }: NucleotideRecord): EarlierRow {
  return { agent, seq, type, ms: msOf(hlc), payload, hlc }
}
