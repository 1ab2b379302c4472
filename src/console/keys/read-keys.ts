import type { ApiKey, ServiceClient } from '../../client/index.js'

/** Keys of one page, and the most that a search shows. */
export const PAGE_KEYS = 100

/** Keys, and the cursor of the page behind them. */
export interface ReadKeys {
  keys: ApiKey[]
  next: string | undefined
}

/** One page of keys; for a search every key, of which a server has at most 10,000. */
export async function readKeys(
  { apiKeys }: ServiceClient,
  { every, cursor, signal }: { every: boolean; cursor: string | undefined; signal: AbortSignal },
): Promise<ReadKeys> {
  if (!every) {
    const page = await apiKeys.list({ cursor, limit: PAGE_KEYS, signal })
    return { keys: page.api_keys, next: page.next_cursor ?? undefined }
  }
  const keys: ApiKey[] = []
  for await (const key of apiKeys.listAll({ signal })) keys.push(key)
  return { keys, next: undefined }
}

/** The keys whose name, in any case, or id contains a text. */
export function found(keys: readonly ApiKey[], search: string): readonly ApiKey[] {
  const wanted = search.toLowerCase()
  return keys.filter(({ name, key_id: id }) => name.toLowerCase().includes(wanted) || id.includes(wanted))
}
