import { NotFoundError, type ServiceClient } from '../../client/index.js'
import { withoutCovered } from './key-reached.js'
import type { WhoAmI } from './session.js'

type StatusPage = Awaited<ReturnType<ServiceClient['agentStatuses']>>

const PAGE_AGENTS = 100
/** What names of agents are made of. */
const LETTERS = /^[A-Za-z0-9_.:-]*$/

/** Agents that a key reaches. */
export interface Reached {
  statuses: StatusPage['statuses']
  /** Whether there are more than were read. */
  isCut: boolean
}

/** Reads the state of the agents that a key reaches; at most about `most` of them. */
export async function readReached(
  service: ServiceClient,
  { agents }: Pick<WhoAmI, 'agents'>,
  { most, signal }: { most: number; signal: AbortSignal },
): Promise<Reached> {
  const statuses: StatusPage['statuses'] = []
  for (const pattern of agents.length === 0 ? ['*'] : withoutCovered(agents)) {
    if (!pattern.endsWith('*')) {
      statuses.push(...(await readOne(service, pattern, signal)))
      continue
    }
    let cursor: string | undefined
    do {
      if (statuses.length >= most) return { statuses, isCut: true }
      const prefix = pattern.slice(0, -1)
      const page = await service.agentStatuses({ prefix, cursor, limit: PAGE_AGENTS, signal })
      statuses.push(...page.statuses)
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  }
  return { statuses, isCut: false }
}

/** A key may name an agent that is not there yet. */
async function readOne(
  service: ServiceClient,
  agent: string,
  signal: AbortSignal,
): Promise<StatusPage['statuses']> {
  try {
    return [await service.agent(agent).status({ signal })]
  } catch (error) {
    if (error instanceof NotFoundError) return []
    throw error
  }
}

/** Names that begin with `prefix` of agents that a key reaches, in order; at most `most`. */
export async function namesReached(
  service: ServiceClient,
  { agents }: Pick<WhoAmI, 'agents'>,
  { prefix, most, signal }: { prefix: string; most: number; signal: AbortSignal },
): Promise<string[]> {
  // No name begins so, and the server would refuse the question.
  if (!LETTERS.test(prefix)) return []
  const found = await Promise.all(
    (agents.length === 0 ? ['*'] : agents).map(async (pattern) => {
      if (!pattern.endsWith('*')) return pattern.startsWith(prefix) ? [pattern] : []
      const beginning = pattern.slice(0, -1)
      const asked = prefix.startsWith(beginning) ? prefix : beginning
      if (!asked.startsWith(prefix)) return []
      return (await service.listAgents({ prefix: asked, limit: most, signal })).agents
    }),
  )
  return [...new Set(found.flat())].sort().slice(0, most)
}
