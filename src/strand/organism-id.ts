/**
 * The pattern of organism ids: an agent name without two dots in a row, and not `server`. It excludes the
 * separators of agent addresses (`::`), paths and store keys.
 */
export const organismIdPattern = '^(?!server$)(?!.*\\.\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

/**
 * Ids that a new organism cannot have, in lower case: members of every JavaScript object, and words with a
 * meaning in URLs of this server. Existing organisms keep such an id.
 */
const reservedWords: ReadonlySet<string> = new Set([
  ...Object.getOwnPropertyNames(Object.prototype).map((name) => name.toLowerCase()),
  'prototype',
  'null',
  'undefined',
  'true',
  'false',
  'nan',
  'infinity',
  'default',
  'auth',
  'server',
  'root',
  'admin',
  'sys',
  'agents',
  'organisms',
])

/** Whether an id is reserved, regardless of case. */
export function isReservedOrganismId(id: string): boolean {
  return reservedWords.has(id.toLowerCase())
}

/** Separates the id of an organism from the name of a member in the member's address. */
export const memberSeparator = '::'

/** The member that the auth namespace of an organism creates; the name is reserved for it. */
export const authMember = 'auth'

/**
 * The agent of the server log (docs/adr/0023-server-log.md). The name cannot collide: only members of
 * organisms have `::` in their names, and `server` is not an organism id.
 */
export const logAgent = 'server::log'

/** The agent on whose strand the server records actions on itself (docs/adr/0033-lines-of-keys.md). */
export const auditAgent = 'server::audit'

/**
 * Whether an agent belongs to the server: only the server writes to it, and lists and counts of agents
 * exclude it.
 */
export function isServerAgent(name: string): boolean {
  return name === logAgent || name === auditAgent
}
