import { limits } from '../../../base/limits/limits.js'
import type { RequestShard } from '../../../dispatch/links/shard-link.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { ApiKeyChanges } from '../../../protocol/api-key-messages.js'
import type { ApiKeys } from './api-keys.js'
import type { Principal } from '../../routes/route.js'

/** The parts needed to keep the scoped keys up to date. */
export interface ApiKeySyncParts {
  shards: Shards
  keys: ApiKeys
  /** True while the server must not write. */
  readOnly(): boolean
  nowMs(): number
}

/** The shard that stores the scoped keys. */
export const KEY_SHARD = 0

/**
 * Keeps the scoped keys in memory equal to those of their shard, and reports to it when they were last used.
 */
export class ApiKeySync {
  readonly #parts: ApiKeySyncParts
  #timers: NodeJS.Timeout[] = []

  constructor(parts: ApiKeySyncParts) {
    this.#parts = parts
  }

  /**
   * Starts ending expired keys and reporting uses. The keys themselves are loaded by `learn` from each new
   * thread of their shard.
   */
  start(): void {
    const { keys, nowMs } = this.#parts
    this.#timers = [
      setInterval(() => keys.endExpired(nowMs()), limits.apiKeyExpiryMs),
      setInterval(() => void this.#reportUses(), limits.apiKeyUsesMs),
    ]
  }

  /** Loads all keys, if `shard` is the one that stores them. @throws Error if they cannot be read */
  async load(shard: number, request: RequestShard): Promise<void> {
    if (shard !== KEY_SHARD) return
    const { keys } = this.#parts
    const storedIds = new Set<string>()
    let after = ''
    for (let more = true; more;) {
      const page = await request({ kind: 'apiKeyList', after, limit: limits.apiKeyLoadRows })
      if (page.kind !== 'apiKeys') throw new Error(`Cannot read the API keys: ${JSON.stringify(page)}`)
      for (const row of page.rows) {
        keys.add(row)
        storedIds.add(row.keyId)
      }
      after = page.rows.at(-1)?.keyId ?? after
      more = page.more
    }
    keys.keepOnly(storedIds)
  }

  apply({ created, removed }: ApiKeyChanges): void {
    for (const row of created) this.#parts.keys.add(row)
    for (const keyId of removed) this.#parts.keys.remove(keyId)
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#reportUses()
  }

  /** A use that cannot be stored now is stored with the next use of its key. */
  async #reportUses(): Promise<void> {
    if (this.#parts.readOnly()) return
    const uses = this.#parts.keys.takeUses()
    if (uses.length === 0) return
    await this.#parts.shards.requestShard(KEY_SHARD, { kind: 'apiKeysUsed', uses, options: {} })
  }
}

/** Whether a principal is built in: defined by the settings alone. */
export function isBuiltIn({ key, user }: Principal): boolean {
  return key === undefined && user === undefined
}

/** The shard that knows whether a principal's credential is valid, and that reports its end. */
export function shardOfCredential({ user }: Principal, shards: Pick<Shards, 'shardOf'>): number {
  return user === undefined ? KEY_SHARD : shards.shardOf(user.namespace.agent)
}

/**
 * Whether the validity of a principal's credential is unknown because its shard is unavailable, not only
 * being transferred.
 */
export function isValidityUnknown(
  principal: Principal,
  shards: Pick<Shards, 'shardOf' | 'lastingRefusal'>,
): boolean {
  if (isBuiltIn(principal)) return false
  return shards.lastingRefusal(shardOfCredential(principal, shards)) !== undefined
}
