import type { Change } from '../../protocol/auth-messages.js'
import type { Command } from '../../protocol/messages.js'

/** Writes of the server itself, which are small, and the end of a key. */
const commands = new Set<Command['kind']>([
  'apiKeyDelete',
  'apiKeysUsed',
  'auditAppend',
  'auditOpen',
  'authorsEnd',
  'logAppend',
  'logOpen',
  'mailAttempted',
  'proposalsSweep',
  'uploadsEnd',
])
/** Changes that end access (`whileFull` of their routes). */
const changes = new Set<Change['kind']>([
  'logout',
  'passkeyRemove',
  'revoke',
  'sessionEnd',
  'userDelete',
  'userLogout',
])

/** Whether a shard takes a command while the data disk of its node is nearly full. */
export function isWhileFull(command: Command): boolean {
  if (!('options' in command)) return true
  return command.kind === 'authChange' ? changes.has(command.change.kind) : commands.has(command.kind)
}
