import type { NucleotideRecord, ServiceClient } from '../../client/index.js'
import { type AccessibleAgents, readAccessibleAgents } from '../parts/accessible-agents.js'
import { msOf } from '../parts/format.js'
import { allTypes, type LiveRow } from '../parts/records/tail.js'
import { hasScope, type WhoAmI } from '../parts/session.js'

/** The most agents whose records are counted. */
export const AGENTS_COUNTED = 1_000
const PROPOSALS_COUNTED = 1_000
/** The most agents of a limited key whose proposals are counted. */
const AGENTS_QUERIED_MAX = 20
/** The number of records on the page. */
export const ROWS_SHOWN = 20

/** A count; `isCut` if there are more. */
interface Counted {
  count: number
  isCut: boolean
  /** The number of agents that were searched; undefined for all. */
  agents: number | undefined
}

/** The content of the page except the metrics. Members that the key cannot read are undefined. */
export interface Overview {
  accessible: AccessibleAgents | undefined
  proposals: Counted | undefined
}

/** Reads the parts of the overview that the key can read. */
export async function readOverview(
  service: ServiceClient,
  who: WhoAmI,
  signal: AbortSignal,
): Promise<Overview> {
  const accessible = hasScope(who, 'records:read')
    ? await readAccessibleAgents(service, who, { most: AGENTS_COUNTED, signal })
    : undefined
  const proposals = hasScope(who, 'proposals:decide')
    ? await countProposals(service, agentsToQuery(who, accessible), signal)
    : undefined
  return { accessible, proposals }
}

/** A key that is limited to agents has to query proposals agent by agent. */
function agentsToQuery(
  { agents }: WhoAmI,
  accessible: AccessibleAgents | undefined,
): readonly (string | undefined)[] {
  if (agents.length === 0) return [undefined]
  if (accessible === undefined) return agents.filter((name) => !name.endsWith('*'))
  return lastWritten(accessible).map(({ agent_id: agent }) => agent)
}

function lastWritten({ statuses }: AccessibleAgents): AccessibleAgents['statuses'] {
  return [...statuses].sort((one, other) => (one.timestamp_hlc < other.timestamp_hlc ? 1 : -1))
}

async function countProposals(
  service: ServiceClient,
  agents: readonly (string | undefined)[],
  signal: AbortSignal,
): Promise<Counted> {
  const pages = await Promise.all(
    agents
      .slice(0, AGENTS_QUERIED_MAX)
      .map((agent) => service.proposals.list({ agent, state: 'proposed', limit: PROPOSALS_COUNTED, signal })),
  )
  return {
    count: pages.reduce((sum, { proposals }) => sum + proposals.length, 0),
    isCut: pages.some(({ next_cursor: next }) => next !== null),
    agents: agents.length > AGENTS_QUERIED_MAX ? AGENTS_QUERIED_MAX : undefined,
  }
}

/** A record that existed before the page was opened. */
export type EarlierRow = Omit<LiveRow, 'id'>

/**
 * Reads the newest records of the agents, newest first. Only the agents with the latest writes can have them.
 */
export async function readNewest(
  service: ServiceClient,
  accessible: AccessibleAgents,
  { showsSystem, signal }: { showsSystem: boolean; signal: AbortSignal },
): Promise<EarlierRow[]> {
  const written = lastWritten(accessible)
    .filter(({ record_count: count }) => count > 0)
    .slice(0, ROWS_SHOWN)
  const lists = await Promise.all(
    written.map(async ({ agent_id: agent }) => {
      const latest = { type: 'latest', limit: ROWS_SHOWN, ...(showsSystem && { types: allTypes }) } as const
      const { records } = await service.agent(agent).query(latest, { signal })
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
