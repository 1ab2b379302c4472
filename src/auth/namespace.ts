import { authMember, memberSeparator, organismIdPattern } from '../strand/organism-id.js'

/**
 * A table of users with a separate signing key and separate lockout, refresh and revocation state.
 * Credentials of one namespace are not valid in another (docs/adr/0017-organisms.md).
 */
export interface Namespace {
  /** Empty for the root namespace, else the id of the organism. */
  readonly id: string
  /** The agent whose strand has the audit records, and whose shard stores the state of the namespace. */
  readonly agent: string
}

const wholeId = new RegExp(organismIdPattern)

/** Whether `text` is a valid organism id. */
export function isOrganismId(text: string): boolean {
  return wholeId.test(text)
}

/**
 * The namespace outside organisms.
 * @param serviceAgentId the default agent, whose strand has its audit records
 */
export function rootNamespace(serviceAgentId: string): Namespace {
  return { id: '', agent: serviceAgentId }
}

/** The namespace of an organism, with the agent `<organism_id>::auth`; `undefined` if the id is invalid. */
export function organismNamespace(organismId: string): Namespace | undefined {
  return isOrganismId(organismId)
    ? { id: organismId, agent: memberAddress(organismId, authMember) }
    : undefined
}

export function memberAddress(organismId: string, name: string): string {
  return `${organismId}${memberSeparator}${name}`
}

/** The id of the organism of an agent; undefined if the agent is not a member of one. */
export function memberOrganism(agent: string): string | undefined {
  const end = agent.indexOf(memberSeparator)
  return end === -1 ? undefined : agent.slice(0, end)
}

/**
 * Whether tokens of the namespace can reach an agent, whose policies then decide about its records
 * (docs/adr/0012-row-policies.md). Tokens of the root namespace reach agents outside organisms; tokens of an
 * organism reach its members.
 */
export function reachesAgent(namespace: Namespace, agent: string): boolean {
  if (namespace.id === '') return !agent.includes(memberSeparator)
  return agent.startsWith(`${namespace.id}${memberSeparator}`)
}

/** Whether an API key may reach an agent. @param agents names and `prefix*`; empty for all agents */
export function reaches(agents: readonly string[], agent: string): boolean {
  if (agents.length === 0) return true
  return agents.some((one) => (one.endsWith('*') ? agent.startsWith(one.slice(0, -1)) : agent === one))
}
