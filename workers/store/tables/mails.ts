import type { Environment } from '../environment.js'
import { byHashOfKey } from '../row-move.js'
import type { TableSpec } from '../table-spec.js'
import { expiryKey } from './tables.js'

/** The key of a mail in the outbox: its due time and its id. @returns hex */
export function mailKey(dueAtMs: number, id: string): string {
  return expiryKey(dueAtMs, Buffer.from(id)).toString('hex')
}

/** Mails that are due, oldest first: their keys and sealed texts. */
export function* mailsDue(
  environment: Environment,
  nowMs: number,
): Generator<{ key: string; sealed: Buffer }> {
  const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs + 1, Buffer.alloc(0)) }
  for (const { key, value } of environment.mails.getRange(range)) {
    yield { key: key.toString('hex'), sealed: Buffer.from(value) }
  }
}

export function findMail(environment: Environment, key: string): Buffer | undefined {
  const value = environment.mails.get(Buffer.from(key, 'hex'))
  return value === undefined ? undefined : Buffer.from(value)
}

/** The outbox: sealed mails by their key; undefined removes a mail. */
export const mails: TableSpec<Environment, Map<string, Buffer | undefined>> = {
  open: (environment) => environment,
  moves: { mails: byHashOfKey },
  changes: () => new Map(),
  rows: ({ size }) => size,
  put(environment, changes) {
    for (const [name, sealed] of changes) {
      const key = Buffer.from(name, 'hex')
      if (sealed === undefined) environment.mails.remove(key)
      else environment.mails.put(key, sealed)
    }
  },
}
