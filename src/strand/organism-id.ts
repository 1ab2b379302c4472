/**
 * What an organism's id is made of, for regular expressions and JSON Schema: an agent's name without two dots in a row,
 * and not `server`. It contains no separator of agents' addresses (`::`), of paths or of keys of the store.
 */
export const organismIdPattern = '^(?!server$)(?!.*\\.\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

/**
 * Names that no new organism can have, in lower case: members of every JavaScript object, and words with a meaning in
 * this server's addresses. Organisms that already have such a name keep it.
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

/** Whether a new organism cannot have this id, in whatever case, though its shape is right. */
export function isReservedOrganismId(id: string): boolean {
  return reservedWords.has(id.toLowerCase())
}

/** Separates an organism's id from the name of a member in the member's address. */
export const memberSeparator = '::'

/** The member that an organism's auth namespace makes for itself; nobody else can have that name. */
export const authMember = 'auth'

/**
 * The agent of the server log (docs/adr/0023-server-log.md). Only organisms make agents with `::` in their names, and
 * none can have the id before it.
 */
export const logAgent = 'server::log'

/** The agent on whose strand the server records actions on itself (docs/adr/0033-lines-of-keys.md). */
export const auditAgent = 'server::audit'

/**
 * Whether an agent is one of the server's own: only the server writes to it, and no list or count of agents includes
 * it.
 */
export function isServerAgent(name: string): boolean {
  return name === logAgent || name === auditAgent
}
