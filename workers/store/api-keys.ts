import { limits } from '../../src/base/limits.js'
import type { ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { Environment } from './environment.js'

/* The scoped API keys, in the order of their ids; only the first shard has any. */

/** How many there are. */
export function apiKeyCount({ apiKeys }: Environment): number {
  return apiKeys.getKeysCount()
}

/** The key of that id. */
export function findApiKey({ apiKeys }: Environment, keyId: string): ApiKeyRow | undefined {
  const value = apiKeys.get(Buffer.from(keyId))
  return value === undefined ? undefined : rowOf(value)
}

/** Keys behind an id, `limit` of them at most and about `pageBytesMax` bytes. */
export function apiKeyPage(
  { apiKeys }: Environment,
  { after, limit }: { after: string; limit: number },
): { rows: ApiKeyRow[]; more: boolean } {
  const rows: ApiKeyRow[] = []
  let bytes = 0
  for (const { value } of apiKeys.getRange({ start: Buffer.from(after === '' ? '' : `${after}\0`) })) {
    if (rows.length >= limit || bytes >= limits.pageBytesMax) return { rows, more: true }
    bytes += value.length
    rows.push(rowOf(value))
  }
  return { rows, more: false }
}

/** Writes keys, and removes those that are undefined, within the caller's transaction. */
export function putApiKeys(
  { apiKeys }: Environment,
  pending: ReadonlyMap<string, ApiKeyRow | undefined>,
): void {
  for (const [keyId, row] of pending) {
    if (row === undefined) apiKeys.remove(Buffer.from(keyId))
    else apiKeys.put(Buffer.from(keyId), Buffer.from(JSON.stringify(row)))
  }
}

/** Rows from before makers were kept are those of keys that the root key made. */
function rowOf(value: Buffer): ApiKeyRow {
  const row = JSON.parse(value.toString()) as Omit<ApiKeyRow, 'madeBy' | 'line'> & Partial<ApiKeyRow>
  return { ...row, madeBy: row.madeBy ?? 'root', line: row.line ?? row.keyId }
}
