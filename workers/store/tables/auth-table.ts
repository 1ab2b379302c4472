import { limits } from '../../../src/base/limits/limits.js'
import type { Revocation } from '../../../src/protocol/auth-messages.js'
import type { AuthKind, AuthRows } from './auth-rows.js'
import type { Environment } from '../environment.js'
import { expiryKey } from './tables.js'

/** A row to be written, or to be removed if it has no value. */
export interface PendingAuthRow {
  /** JSON. */
  value?: string
  /** When the row may be swept; a row that is written again gets a new time. */
  expiresAtMs?: number
}

/** A revocation, to be kept until its tokens have expired. */
export type PendingRevocation = Revocation & { namespace: string }

/** A row as it is stored. */
interface KeptRow<Kind extends AuthKind = AuthKind> {
  value: AuthRows[Kind]
  expiresAtMs?: number
}

/**
 * How many expired rows one commit removes beside two for each row that it writes, so that it removes more than it
 * adds.
 */
const SWEEP_ROWS_MIN = 64

const noValue = Buffer.alloc(0)

/**
 * Key of a row in its namespace's own storage: `auth:<kind>:<id>` after the namespace and NUL
 * (docs/adr/0010-auth-state.md). No namespace, kind or id holds NUL.
 */
export function authKey(namespace: string, kind: AuthKind, id: string): string {
  return `${namespace}\0auth:${kind}:${id}`
}

/** The namespace of a row, by its key or by the key of a revocation. */
export function namespaceOfKey(key: Buffer): string {
  return key.subarray(0, key.indexOf(0)).toString()
}

/** The value of a pending row, as it will be read. */
export function pendingValue<Kind extends AuthKind>(
  _kind: Kind,
  { value }: PendingAuthRow,
): AuthRows[Kind] | undefined {
  return value === undefined ? undefined : (JSON.parse(value) as AuthRows[Kind])
}

/** Auth state of all namespaces of one shard (docs/adr/0010-auth-state.md). */
export class AuthTable {
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** The value of a row, expired or not. @param key as `authKey` makes it of the kind */
  find<Kind extends AuthKind>(_kind: Kind, key: string): AuthRows[Kind] | undefined {
    const bytes = this.#environment.auth.find(Buffer.from(key))
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as KeptRow<Kind>).value
  }

  /** Keys that begin with `prefix`, after `after`, in order. */
  keys(prefix: string, { after = '', limit }: { after?: string; limit: number }): string[] {
    const start = Buffer.from(after > prefix ? `${after}\0` : prefix)
    const end = endOf(prefix)
    return [...this.#environment.auth.getKeys({ start, end, limit })].map((key) => key.toString())
  }

  count(prefix: string): number {
    return this.#environment.auth.getKeysCount({ start: Buffer.from(prefix), end: endOf(prefix) })
  }

  /** Every revocation that is still kept. */
  ended(nowMs: number): PendingRevocation[] {
    const rows: PendingRevocation[] = []
    for (const { key, value } of this.#environment.authEnded.getRange({})) {
      const untilMs = key.readUIntBE(0, 6)
      if (untilMs > nowMs) rows.push(JSON.parse(value.toString()) as PendingRevocation)
    }
    return rows
  }

  /** Writes rows and revocations, and removes some that have expired, within the caller's transaction. */
  put(rows: ReadonlyMap<string, PendingAuthRow>, ended: readonly PendingRevocation[], nowMs: number): void {
    for (const [name, { value, expiresAtMs }] of rows) {
      const key = Buffer.from(name)
      if (value === undefined) {
        this.#environment.auth.remove(key)
        continue
      }
      const expiry = expiresAtMs === undefined ? '' : `,"expiresAtMs":${expiresAtMs}`
      this.#environment.auth.put(key, Buffer.from(`{"value":${value}${expiry}}`))
      if (expiresAtMs !== undefined) this.#environment.authExpiries.put(expiryKey(expiresAtMs, key), noValue)
    }
    for (const one of ended) {
      const key = expiryKey(one.untilMs, Buffer.from(`${one.namespace}\0${one.what}:${one.id}`))
      this.#environment.authEnded.put(key, Buffer.from(JSON.stringify(one)))
    }
    if (rows.size > 0 || ended.length > 0) this.#sweep(nowMs, SWEEP_ROWS_MIN + 2 * (rows.size + ended.length))
  }

  #sweep(nowMs: number, limit: number): void {
    const { auth, authExpiries, authEnded } = this.#environment
    const range = { start: expiryKey(0, noValue), end: expiryKey(nowMs, noValue), limit }
    const expiries = [...authExpiries.getKeys(range)]
    for (const expiry of expiries) {
      const key = expiry.subarray(6)
      const bytes = auth.get(key)
      const kept = bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as KeptRow)
      // A row that was written again has a later expiry, or none.
      if (kept?.expiresAtMs !== undefined && kept.expiresAtMs <= nowMs) auth.remove(key)
      authExpiries.remove(expiry)
    }
    const over = expiryKey(Math.max(0, nowMs - limits.endedKeptMs), noValue)
    const forgotten = [...authEnded.getKeys({ ...range, end: over })]
    for (const key of forgotten) authEnded.remove(key)
  }
}

function endOf(prefix: string): Buffer {
  return Buffer.concat([Buffer.from(prefix), Buffer.of(0xff)])
}
