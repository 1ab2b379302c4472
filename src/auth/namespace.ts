import { authMember, memberSeparator, organismIdPattern } from '../strand/organism-id.js'

/**
 * One table of users with its own signing key, lockout, refresh and revocation state (docs/adr/0017-organisms.md).
 * Nothing of one namespace works in another.
 */
export interface Namespace {
  /** Empty for the root namespace, else the organism's id. */
  readonly id: string
  /** The agent whose strand takes the audit records, and whose shard keeps the namespace's state. */
  readonly agent: string
}

const wholeId = new RegExp(organismIdPattern)

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
  return isOrganismId(organismId)
    ? { id: organismId, agent: memberAddress(organismId, authMember) }
    : undefined
}

/** The address of a member of an organism. */
export function memberAddress(organismId: string, name: string): string {
  return `${organismId}${memberSeparator}${name}`
}

/** The id of the organism whose member an agent is; undefined for one outside organisms. */
export function memberOrganism(agent: string): string | undefined {
  const end = agent.indexOf(memberSeparator)
  return end === -1 ? undefined : agent.slice(0, end)
}

/**
 * Whether tokens of the namespace can reach the agent at all (docs/adr/0012-row-policies.md); policies then decide
 * about its records. Tokens of the root namespace reach agents outside organisms, those of an organism its members.
 */
export function reachesAgent(namespace: Namespace, agent: string): boolean {
  if (namespace.id === '') return !agent.includes(memberSeparator)
  return agent.startsWith(`${namespace.id}${memberSeparator}`)
}

/** Whether a key may reach an agent. @param agents its limit: names and `prefix*`; empty means none */
export function reaches(agents: readonly string[], agent: string): boolean {
  if (agents.length === 0) return true
  return agents.some((one) => (one.endsWith('*') ? agent.startsWith(one.slice(0, -1)) : agent === one))
}
