/**
 * One table of users with its own signing key, lockout, refresh and revocation state (spec.md, Organism auth
 * namespace). Nothing of one namespace works in another.
 */
export interface Namespace {
  /** Empty for the root namespace, else the organism's id. */
  readonly id: string
  /** The agent whose strand takes the audit records, and whose shard keeps the namespace's state. */
  readonly agent: string
}

/**
 * What an organism's id is made of, for regular expressions and JSON Schema: an agent's name without two dots in a
 * row. Nothing in it can part an agent's address (`::`), a path or a key of the store.
 */
export const organismIdPattern = '^(?!.*\\.\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

const wholeId = new RegExp(organismIdPattern)

/** Parts an organism's id from the name of a member. */
const SEPARATOR = '::'

/** Whether `text` can be the id of an organism. */
export function isOrganismId(text: string): boolean {
  return wholeId.test(text)
}

/** The namespace outside organisms. @param serviceAgentId the default agent, which takes its audit records */
export function rootNamespace(serviceAgentId: string): Namespace {
  return { id: '', agent: serviceAgentId }
}

/**
 * The namespace of an organism, with the sub-agent `<organism_id>::auth`.
 * @returns `undefined` when `organismId` cannot be one
 */
export function organismNamespace(organismId: string): Namespace | undefined {
  return isOrganismId(organismId) ? { id: organismId, agent: `${organismId}${SEPARATOR}auth` } : undefined
}

/**
 * Whether tokens of the namespace may reach the agent at all, policies apart: those of the root namespace agents
 * outside organisms, those of an organism its own members (contract.md 3).
 */
export function reachesAgent(namespace: Namespace, agent: string): boolean {
  if (namespace.id === '') return !agent.includes(SEPARATOR)
  return agent.startsWith(`${namespace.id}${SEPARATOR}`)
}
