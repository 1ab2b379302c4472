import type { ServiceClient } from '../../client/index.js'

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
