import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { type ApiKeyChanges, type ApiKeyRow, isStoredApiKey } from '../../../src/protocol/api-key-messages.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { invalidRows } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'
import { checkedRow, InvalidRow } from './row-shape.js'

/** The scoped API keys, in the order of their ids. Only the first shard has any. */
export class ApiKeyTable {
  readonly #environment: Environment
  readonly #setAside: SetAside
  /** Unrestricted keys by id; undefined until the first use. */
  #admins: Map<string, ApiKeyRow> | undefined

  constructor(environment: Environment, setAside: SetAside) {
    this.#environment = environment
    this.#setAside = setAside
  }

  get count(): number {
    return this.#environment.apiKeys.getKeysCount()
  }

  /** Keys with `admin:*` that are not limited to agents; some may have expired. @throws InvalidRow */
  get admins(): ReadonlyMap<string, ApiKeyRow> {
    this.#admins ??= new Map(
      [...this.#environment.apiKeys.getRange({})]
        .map(({ key, value }) => apiKeyRowOf(key.toString(), value))
        .filter(isAdmin)
        .map((row) => [row.keyId, row]),
    )
    return this.#admins
  }

  find(keyId: string): ApiKeyRow | undefined {
    const value = this.#environment.apiKeys.find(Buffer.from(keyId))
    return value === undefined ? undefined : apiKeyRowOf(keyId, value)
  }

  /** Valid keys after an id: at most `limit`, and about `scannedRowBytesMax` bytes. */
  page({ after, limit }: { after: string; limit: number }): { rows: ApiKeyRow[]; more: boolean } {
    const rows: ApiKeyRow[] = []
    let bytes = 0
    const start = Buffer.from(after === '' ? '' : `${after}\0`)
    for (const { key, value } of this.#environment.apiKeys.getRange({ start })) {
      if (rows.length >= limit || bytes >= limits.scannedRowBytesMax) return { rows, more: true }
      const row = this.#setAside.unlessInvalid(() => apiKeyRowOf(key.toString(), value))
      if (row === undefined) continue
      bytes += value.length
      rows.push(row)
    }
    return { rows, more: false }
  }

  /** Writes keys, and deletes undefined ones, within the caller's transaction. */
  put(pending: ReadonlyMap<string, ApiKeyRow | undefined>): void {
    const { apiKeys: table } = this.#environment
    for (const [keyId, row] of pending) {
      if (row === undefined) {
        table.remove(Buffer.from(keyId))
        this.#admins?.delete(keyId)
        continue
      }
      assert(row.keyId === keyId, 'a key is stored under its id')
      table.put(Buffer.from(keyId), Buffer.from(JSON.stringify({ ...row, scopeSet })))
      if (isAdmin(row)) this.#admins?.set(keyId, row)
    }
  }
}

/** Changes of API keys. */
export class ApiKeyRows {
  /** By id; undefined deletes a key. */
  readonly rows = new Map<string, ApiKeyRow | undefined>()
  /** Created and deleted keys, for the fronts; uses of keys are not included. */
  readonly shown: ApiKeyChanges = { created: [], removed: [] }
}

export const apiKeys: TableSpec<ApiKeyTable, ApiKeyRows> = {
  open: (environment, setAside) => new ApiKeyTable(environment, setAside),
  // All API keys are in the first shard.
  moves: { apiKeys: (row) => [{ ...row, shard: 0 }] },
  faults: ({ apiKeys: table }) => invalidRows(table, (key, value) => apiKeyRowOf(key.toString(), value)),
  changes: () => new ApiKeyRows(),
  rows: ({ rows }) => rows.size,
  put: (opened, { rows }) => opened.put(rows),
}

export function isAdmin({ scopes, agents }: Pick<ApiKeyRow, 'scopes' | 'agents'>): boolean {
  return scopes.includes('admin:*') && agents.length === 0
}

/**
 * The version of the scopes in a row: since version 2, `records:write` does not include deleting and erasing.
 */
const scopeSet = 2

/**
 * Decodes a row. Without `madeBy` it is from a version in which only the root key created keys. Scopes of
 * version 1 are expanded, so that the key keeps its permissions.
 * @throws InvalidRow
 */
export function apiKeyRowOf(keyId: string, value: Uint8Array): ApiKeyRow {
  const { scopeSet: set, ...row } = checkedRow(`apiKeys ${keyId}`, value, isStoredApiKey)
  if (row.keyId !== keyId) throw new InvalidRow(`apiKeys ${keyId}`)
  const scopes = set === undefined ? row.scopes.flatMap((scope) => expanded[scope] ?? [scope]) : row.scopes
  return { ...row, scopes, madeBy: row.madeBy ?? 'root', line: row.line ?? row.keyId }
}

const expanded: Partial<Record<string, string[]>> = {
  'records:write': ['records:write', 'records:delete', 'records:erase'],
}
