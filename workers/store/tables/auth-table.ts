import { boundedCache } from '../../../src/base/bounded-cache.js'
import { limits } from '../../../src/base/limits/limits.js'
import { members, oneOf, type Check } from '../../../src/base/shape.js'
import type { Revocation } from '../../../src/protocol/auth-messages.js'
import { type AuthKind, authRowChecks, type AuthRows, idIn, isAuthKind } from './auth-rows.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { type RowMover, shardOfNamespace } from '../row-move.js'
import { invalidRows } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'
import { isExpired } from './expired.js'
import { checkedRow, InvalidRow } from './row-shape.js'
import { scanBudget, takeRow } from './scan-budget.js'
import { expiryKey } from './tables.js'

/** A row to write or, without a value, to remove. */
export interface PendingAuthRow {
  value?: string
  /** When the row may be removed. Each write sets a new time. */
  expiresAtMs?: number
}

/** A revocation, which is stored until its tokens have expired. */
export type PendingRevocation = Revocation & { namespace: string }

/**
 * A commit removes up to this many expired rows, and two more for each row that it writes, so that it can
 * remove more than it adds.
 */
const SWEEP_ROWS_MIN = 64

const noValue = Buffer.alloc(0)

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

/** The kind in the key of a row; undefined for a kind that this version does not know. */
export function kindOfKey(key: Buffer): AuthKind | undefined {
  const [, kind] = key
    .subarray(key.indexOf(0) + 1)
    .toString()
    .split(':', 2)
  return kind !== undefined && isAuthKind(kind) ? kind : undefined
}

export function pendingValue<Kind extends AuthKind>(
  _kind: Kind,
  { value }: PendingAuthRow,
): AuthRows[Kind] | undefined {
  return value === undefined ? undefined : (JSON.parse(value) as AuthRows[Kind])
}

/** The value of a stored row. @throws InvalidRow */
export function authRowOf<Kind extends AuthKind>(kind: Kind, key: Buffer, bytes: Uint8Array): AuthRows[Kind] {
  const row = `auth ${key.toString('hex')}`
  const isRow: Check<{ value: AuthRows[Kind] }> = members<{ value: AuthRows[Kind] }>({
    value: authRowChecks[kind],
  })
  const { value } = checkedRow(row, bytes, isRow)
  const id = idIn(value)
  if (id !== undefined && !key.toString().endsWith(`\0auth:${kind}:${id}`)) throw new InvalidRow(row)
  return value
}

/** The revocation in a key, which has all of it: a changed value must not make a revoked token valid. */
export function revocationOf(key: Buffer): PendingRevocation {
  const [, namespace = '', what, id = ''] = /^([^\0]*)\0([^:]*):(.*)$/s.exec(key.toString('utf8', 6)) ?? []
  if (!isRevokedKind(what)) throw new InvalidRow(`authEnded ${key.toString('hex')}`)
  return { namespace, what, id, untilMs: key.readUIntBE(0, 6) }
}

const isRevokedKind = oneOf('sid', 'jti', 'sub')

function revocationKey({ namespace, what, id, untilMs }: PendingRevocation): Buffer {
  return expiryKey(untilMs, Buffer.from(`${namespace}\0${what}:${id}`))
}

/** Auth state of all namespaces of one shard (docs/adr/0010-auth-state.md). */
export class AuthTable {
  readonly #environment: Environment
  readonly #setAside: SetAside
  /** The number of rows of some namespaces and kinds, by the beginning of their keys. */
  readonly #totals = boundedCache<string, number>(limits.countedKindsMax)

  constructor(environment: Environment, setAside: SetAside) {
    this.#environment = environment
    this.#setAside = setAside
  }

  /** The value of a row, which may have expired. @param key from `authKey` with this kind @throws InvalidRow */
  find<Kind extends AuthKind>(kind: Kind, key: string): AuthRows[Kind] | undefined {
    const name = Buffer.from(key)
    const bytes = this.#environment.auth.find(name)
    return bytes === undefined ? undefined : authRowOf(kind, name, bytes)
  }

  /** Keys that begin with `prefix`, after `after`, in order. */
  keys(prefix: string, { after = '', limit }: { after?: string; limit: number }): string[] {
    const start = Buffer.from(after > prefix ? `${after}\0` : prefix)
    const { end } = rangeOf(prefix)
    return [...this.#environment.auth.getKeys({ start, end, limit })].map((key) => key.toString())
  }

  /** The number of rows whose keys begin with `prefix`, at most `countedRowsMax`. */
  countSome(prefix: string): number {
    return this.#environment.auth.countSome(rangeOf(prefix))
  }

  /** The number of all rows of a kind, which are counted only the first time. */
  total(namespace: string, kind: AuthKind): number {
    const prefix = authKey(namespace, kind, '')
    const total = this.#totals.get(prefix) ?? this.#environment.auth.getKeysCount(rangeOf(prefix))
    this.#totals.set(prefix, total)
    return total
  }

  /** All revocations whose tokens have not expired. */
  revocations(nowMs: number): PendingRevocation[] {
    const rows: PendingRevocation[] = []
    for (const key of this.#environment.authEnded.getKeys({})) {
      if (key.readUIntBE(0, 6) > nowMs) rows.push(revocationOf(key))
    }
    return rows
  }

  /** Writes rows and revocations, and removes some expired ones, within the caller's transaction. */
  put(rows: ReadonlyMap<string, PendingAuthRow>, ended: readonly PendingRevocation[], nowMs: number): void {
    for (const [name, { value, expiresAtMs }] of rows) {
      const key = Buffer.from(name)
      if (value === undefined) {
        this.#set(key, undefined)
        continue
      }
      const expiry = expiresAtMs === undefined ? '' : `,"expiresAtMs":${expiresAtMs}`
      this.#set(key, Buffer.from(`{"value":${value}${expiry}}`))
      if (expiresAtMs !== undefined) this.#environment.authExpiries.put(expiryKey(expiresAtMs, key), noValue)
    }
    for (const one of ended) {
      this.#environment.authEnded.put(revocationKey(one), Buffer.from(JSON.stringify(one)))
    }
    if (rows.size > 0 || ended.length > 0) this.#sweep(nowMs, SWEEP_ROWS_MIN + 2 * (rows.size + ended.length))
  }

  /** Writes or removes a row, and changes the total of its kind. */
  #set(key: Buffer, value: Buffer | undefined): void {
    const table = this.#environment.auth
    const kind = kindOfKey(key)
    const prefix = kind === undefined ? '' : authKey(namespaceOfKey(key), kind, '')
    const total = this.#totals.peek(prefix)
    if (total !== undefined) {
      const before = table.raw.get(key) === undefined ? 0 : 1
      this.#totals.set(prefix, total - before + (value === undefined ? 0 : 1))
    }
    if (value === undefined) table.remove(key)
    else table.put(key, value)
  }

  #sweep(nowMs: number, limit: number): void {
    const { auth: table, authExpiries, authEnded } = this.#environment
    const range = { start: expiryKey(0, noValue), end: expiryKey(nowMs, noValue), limit }
    const expiries = [...authExpiries.raw.getKeys(range)]
    const budget = scanBudget(limit)
    for (const expiry of expiries) {
      if (!takeRow(budget)) break
      const key = expiry.subarray(6)
      // A row that was written again has a later expiry, or none.
      if (isExpired(table, key, { nowMs, setAside: this.#setAside, budget })) this.#set(key, undefined)
      authExpiries.remove(expiry)
    }
    const end = expiryKey(Math.max(0, nowMs - limits.revocationRetentionMs), noValue)
    const expired = [...authEnded.raw.getKeys({ ...range, end })]
    for (const key of expired) authEnded.remove(key)
  }
}

function rangeOf(prefix: string): { start: Buffer; end: Buffer } {
  const start = Buffer.from(prefix)
  return { start, end: Buffer.concat([start, Buffer.of(0xff)]) }
}

/** Changes of auth state. */
export class AuthChanges {
  /** By their keys. */
  readonly rows = new Map<string, PendingAuthRow>()
  readonly revocations: PendingRevocation[] = []
  /** Namespaces whose signing keys were rotated, for the fronts. */
  readonly rotated: string[] = []
}

/** Moves a row to the shard of its namespace, whose name begins at this offset of the key. */
function byNamespaceAt(at: number): RowMover {
  return (row, move) => [{ ...row, shard: shardOfNamespace(namespaceOfKey(row.key.subarray(at)), move) }]
}

export const auth: TableSpec<AuthTable, AuthChanges> = {
  open: (environment, setAside) => new AuthTable(environment, setAside),
  moves: { auth: byNamespaceAt(0), authExpiries: byNamespaceAt(6), authEnded: byNamespaceAt(6) },
  *faults(environment) {
    yield* invalidRows(environment.auth, (key, value) => {
      const kind = kindOfKey(key)
      if (kind !== undefined) authRowOf(kind, key, value)
    })
    yield* invalidRows(environment.authEnded, revocationOf)
    yield* accountFaults(environment)
  },
  changes: () => new AuthChanges(),
  rows: ({ rows, revocations }) => rows.size + revocations.length,
  put: (opened, { rows, revocations }, nowMs) => opened.put(rows, revocations, nowMs),
}

/** Checks that each e-mail has its account and each account its e-mail. */
function* accountFaults({ auth }: Environment): Generator<string> {
  for (const { key, value } of auth.getRange({})) {
    const [namespace = '', row = ''] = key.toString().split('\0')
    const [, kind, ...rest] = row.split(':')
    const find = (other: string) => {
      const found = auth.get(Buffer.from(`${namespace}\0auth:${other}`))
      return found === undefined ? undefined : (JSON.parse(found.toString()) as { value: unknown }).value
    }
    const stored = (JSON.parse(value.toString()) as { value: unknown }).value
    if (kind === 'email' && find(`user:${String(stored)}`) === undefined) {
      yield 'An e-mail has no account'
    }
    if (kind === 'user' && find(`email:${(stored as { email: string }).email}`) !== rest.join(':')) {
      yield 'An account is not found by its e-mail'
    }
  }
}
