import { NotFoundError, type ServiceClient } from '../../client/index.js'
import type { WhoAmI } from './session.js'

type StatusPage = Awaited<ReturnType<ServiceClient['agentStatuses']>>

const PAGE_AGENTS = 100

/** Whether a name of an agent can contain a text. The server refuses to search for any other. */
export function isNamePart(text: string): boolean {
  return /^[A-Za-z0-9_.:-]{0,258}$/.test(text)
}

/** The agents that a key can access. */
export interface AccessibleAgents {
  statuses: StatusPage['statuses']
  /** Whether there are more than were read. */
  isCut: boolean
}

/**
 * Reads the status of the agents that a key can access, or of those whose name contains a text; reads no
 * further page after `most` agents.
 */
export async function readAccessibleAgents(
  service: ServiceClient,
  { agents }: Pick<WhoAmI, 'agents'>,
  { most, contains = '', signal }: { most: number; contains?: string; signal: AbortSignal },
): Promise<AccessibleAgents> {
  const statuses: StatusPage['statuses'] = []
  for (const pattern of agents.length === 0 ? ['*'] : withoutRedundant(agents)) {
    if (!pattern.endsWith('*')) {
      if (hasPart(pattern, contains)) statuses.push(...(await readOne(service, pattern, signal)))
      continue
    }
    let cursor: string | undefined
    do {
      if (statuses.length >= most) return { statuses, isCut: true }
      const prefix = pattern.slice(0, -1)
      const named = { prefix, contains: contains === '' ? undefined : contains }
      const page = await service.agentStatuses({ ...named, cursor, limit: PAGE_AGENTS, signal })
      statuses.push(...page.statuses)
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
  }
  return { statuses, isCut: false }
}

/** A key can name an agent that does not exist yet. */
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

/** Whether a name contains a text, ignoring case. */
function hasPart(name: string, part: string): boolean {
  return name.toLowerCase().includes(part.toLowerCase())
}

/**
 * The sorted names of the agents that a key can access and that contain a text, ignoring case; at most
 * `most`.
 */
export async function accessibleAgentNames(
  service: ServiceClient,
  { agents }: Pick<WhoAmI, 'agents'>,
  { contains, most, signal }: { contains: string; most: number; signal: AbortSignal },
): Promise<string[]> {
  if (!isNamePart(contains)) return []
  const part = contains === '' ? undefined : contains
  const found = await Promise.all(
    (agents.length === 0 ? ['*'] : agents).map(async (pattern) => {
      if (!pattern.endsWith('*')) return hasPart(pattern, contains) ? [pattern] : []
      const prefix = pattern.slice(0, -1)
      return (await service.listAgents({ prefix, contains: part, limit: most, signal })).agents
    }),
  )
  return [...new Set(found.flat())].sort().slice(0, most)
}

const PATTERN = /^(?=.)[A-Za-z0-9_.:-]{0,258}\*?$/
const PATTERNS_MAX = 100

/** Parses the agents of a key as typed: names, or prefixes with `*`. */
export function readPatterns(text: string): { patterns: string[] } | { fault: string } {
  const patterns = [...new Set(text.split(/[\s,]+/).filter((one) => one !== ''))]
  const wrong = patterns.find((one) => !PATTERN.test(one))
  if (wrong !== undefined) return { fault: `Expected names of agents, or prefixes with *, got “${wrong}”` }
  if (patterns.length > PATTERNS_MAX) return { fault: `Expected at most ${PATTERNS_MAX} names` }
  return { patterns }
}

/** Counts the existing agents that match the patterns, each once. */
export async function countMatchingAgents(
  service: ServiceClient,
  patterns: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const counts = await Promise.all(
    withoutRedundant(patterns).map(async (pattern) => {
      if (pattern.endsWith('*')) {
        const { total } = await service.listAgents({ prefix: pattern.slice(0, -1), limit: 1, signal })
        return total
      }
      // A name sorts before all other names that begin with it.
      const { agents } = await service.listAgents({ prefix: pattern, limit: 1, signal })
      return agents[0] === pattern ? 1 : 0
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Removes patterns that another pattern covers. The remaining ones have no agent in common. */
export function withoutRedundant(patterns: readonly string[]): string[] {
  const beginnings = patterns.filter((one) => one.endsWith('*')).map((one) => one.slice(0, -1))
  return patterns.filter((pattern) => {
    const name = pattern.replace(/\*$/, '')
    const isBeginning = pattern !== name
    return !beginnings.some((one) => name.startsWith(one) && !(isBeginning && one === name))
  })
}
