/**
 * What an organism's id is made of, for regular expressions and JSON Schema: an agent's name without two dots in a
 * row, and not `server`. Nothing in it can part an agent's address (`::`), a path or a key of the store.
 */
export const organismIdPattern = '^(?!server$)(?!.*\\.\\.)[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$'

/**
 * Words that no new organism is named by, in lower case: those that every object of JavaScript answers to, and those
 * that mean something in this server's addresses. Organisms of these names that are there already go on.
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

/** Parts an organism's id from the name of a member in the member's address. */
export const memberSeparator = '::'

/** The member that an organism's auth namespace makes for itself; nobody else can have that name. */
export const authMember = 'auth'

/**
 * The agent of the server log (docs/adr/0023-server-log.md). Only organisms make agents with `::` in their names, and
 * none can have the id before it.
 */
export const logAgent = 'server::log'

/** The agent on whose strand the server tells what was done to itself (docs/adr/0033-lines-of-keys.md). */
export const auditAgent = 'server::audit'

/** Whether an agent is one of the server's own: only the server writes to it, and no list or count of agents has it. */
export function isServerAgent(name: string): boolean {
  return name === logAgent || name === auditAgent
}
