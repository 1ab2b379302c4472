import { limits } from '../../../src/base/limits/limits.js'
import { fields, isNumber } from '../../../src/base/shape.js'
import type { Revocation } from '../../../src/protocol/auth-messages.js'
import type { AuthKind, AuthRows } from './auth-rows.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { expiryKey, jsonOf } from './tables.js'

/** A row to write or, without a value, to remove. */
export interface PendingAuthRow {
  /** JSON. */
  value?: string
  /** When the row may be removed. Each write sets a new time. */
  expiresAtMs?: number
}

/** A revocation, which is stored until its tokens have expired. */
export type PendingRevocation = Revocation & { namespace: string }

interface StoredRow<Kind extends AuthKind = AuthKind> {
  value: AuthRows[Kind]
  expiresAtMs?: number
}

/**
 * A commit removes up to this many expired rows, and two more for each row that it writes, so that it can
 * remove more than it adds.
 */
const SWEEP_ROWS_MIN = 64

const noValue = Buffer.alloc(0)

const isExpiring = fields({ expiresAtMs: isNumber })

/**
 * Key of a row: namespace, NUL, `auth:<kind>:<id>` (docs/adr/0010-auth-state.md). Namespaces, kinds and ids
 * do not contain NUL.
 */
export function authKey(namespace: string, kind: AuthKind, id: string): string {
  return `${namespace}\0auth:${kind}:${id}`
}

/** The namespace in the key of a row or of a revocation. */
export function namespaceOfKey(key: Buffer): string {
  return key.subarray(0, key.indexOf(0)).toString()
}

/** The value of a pending row. */
export function pendingValue<Kind extends AuthKind>(
  _kind: Kind,
  { value }: PendingAuthRow,
): AuthRows[Kind] | undefined {
  return value === undefined ? undefined : (JSON.parse(value) as AuthRows[Kind])
}

/** Auth state of all namespaces of one shard (docs/adr/0010-auth-state.md). */
export class AuthTable {
  readonly #environment: Environment
  readonly #setAside: SetAside

  constructor(environment: Environment, setAside: SetAside) {
    this.#environment = environment
    this.#setAside = setAside
  }

  /** The value of a row, which may have expired. @param key from `authKey` with this kind */
  find<Kind extends AuthKind>(_kind: Kind, key: string): AuthRows[Kind] | undefined {
    const bytes = this.#environment.auth.find(Buffer.from(key))
    return bytes === undefined ? undefined : (JSON.parse(bytes.toString()) as StoredRow<Kind>).value
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

  /** All revocations whose tokens have not expired. */
  revocations(nowMs: number): PendingRevocation[] {
    const rows: PendingRevocation[] = []
    for (const { key, value } of this.#environment.authEnded.getRange({})) {
      const untilMs = key.readUIntBE(0, 6)
      if (untilMs > nowMs) rows.push(JSON.parse(value.toString()) as PendingRevocation)
    }
    return rows
  }

  /** Writes rows and revocations, and removes some expired ones, within the caller's transaction. */
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
      const row = bytes === undefined ? undefined : jsonOf(bytes)
      // A row that was written again has a later expiry, or none.
      if (isExpiring(row) && row.expiresAtMs <= nowMs) auth.remove(key)
      else if (bytes !== undefined && row === undefined)
        this.#setAside.add(`auth ${key.toString('hex')}`, 'It is not JSON, so it does not expire')
      authExpiries.remove(expiry)
    }
    const end = expiryKey(Math.max(0, nowMs - limits.revocationRetentionMs), noValue)
    const expired = [...authEnded.getKeys({ ...range, end })]
    for (const key of expired) authEnded.remove(key)
  }
}

function endOf(prefix: string): Buffer {
  return Buffer.concat([Buffer.from(prefix), Buffer.of(0xff)])
}
