import { NotFoundError, type ServiceClient } from '../../client/index.js'
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

const PATTERN = /^(?=.)[A-Za-z0-9_.:-]{0,258}\*?$/
const PATTERNS_MAX = 100

/** The agents of a key as they are typed: names, or beginnings and `*`. */
export function readPatterns(text: string): { patterns: string[] } | { fault: string } {
  const patterns = [...new Set(text.split(/[\s,]+/).filter((one) => one !== ''))]
  const wrong = patterns.find((one) => !PATTERN.test(one))
  if (wrong !== undefined) return { fault: `Expected names of agents, or beginnings and *, got “${wrong}”` }
  if (patterns.length > PATTERNS_MAX) return { fault: `Expected at most ${PATTERNS_MAX} names` }
  return { patterns }
}

/** How many agents there are now that the patterns name, each counted once. */
export async function countReached(
  service: ServiceClient,
  patterns: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const counts = await Promise.all(
    withoutCovered(patterns).map(async (pattern) => {
      if (pattern.endsWith('*')) {
        const { total } = await service.listAgents({ prefix: pattern.slice(0, -1), limit: 1, signal })
        return total
      }
      // A name comes before all others that begin with it.
      const { agents } = await service.listAgents({ prefix: pattern, limit: 1, signal })
      return agents[0] === pattern ? 1 : 0
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Leaves out what another pattern names already: those that are left have no agent in common. */
export function withoutCovered(patterns: readonly string[]): string[] {
  const beginnings = patterns.filter((one) => one.endsWith('*')).map((one) => one.slice(0, -1))
  return patterns.filter((pattern) => {
    const name = pattern.replace(/\*$/, '')
    const isBeginning = pattern !== name
    return !beginnings.some((one) => name.startsWith(one) && !(isBeginning && one === name))
  })
}
