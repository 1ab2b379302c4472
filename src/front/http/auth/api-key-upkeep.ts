import { limits } from '../../../base/limits/limits.js'
import type { Ask } from '../../../dispatch/links/shard-link.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { ApiKeyChanges } from '../../../protocol/api-key-messages.js'
import type { ApiKeys } from './api-keys.js'
import type { Principal } from '../../routes/route.js'

/** What keeping the scoped keys up to date needs. */
export interface ApiKeyUpkeepParts {
  shards: Shards
  keys: ApiKeys
  /** True while nothing may be written. */
  readOnly(): boolean
  nowMs(): number
}

/** The shard that keeps the scoped keys. */
export const KEY_SHARD = 0

/** Keeps the scoped keys in memory equal to those of the first shard, and reports to it when they were last used. */
export class ApiKeyUpkeep {
  readonly #parts: ApiKeyUpkeepParts
  #timers: NodeJS.Timeout[] = []

  constructor(parts: ApiKeyUpkeepParts) {
    this.#parts = parts
  }

  /** Ends what expires and reports uses from now on. The keys are known: they are learnt from each thread of their shard. */
  start(): void {
    const { keys, nowMs } = this.#parts
    this.#timers = [
      setInterval(() => keys.endExpired(nowMs()), limits.apiKeyExpiryMs),
      setInterval(() => void this.#keepUses(), limits.apiKeyUsesMs),
    ]
  }

  /** Reads all keys, if it is their shard that is asked. @throws Error when they cannot be read */
  async learn(shard: number, ask: Ask): Promise<void> {
    if (shard !== KEY_SHARD) return
    const { keys } = this.#parts
    const there = new Set<string>()
    let after = ''
    for (let more = true; more;) {
      const page = await ask({ kind: 'apiKeyList', after, limit: limits.apiKeyLoadRows })
      if (page.kind !== 'apiKeys') throw new Error(`The API keys could not be read: ${JSON.stringify(page)}`)
      for (const row of page.rows) {
        keys.add(row)
        there.add(row.keyId)
      }
      after = page.rows.at(-1)?.keyId ?? after
      more = page.more
    }
    keys.keepOnly(there)
  }

  /** A commit has made or removed keys. */
  changed({ made, gone }: ApiKeyChanges): void {
    for (const row of made) this.#parts.keys.add(row)
    for (const keyId of gone) this.#parts.keys.remove(keyId)
  }

  /** Stores the last uses. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await this.#keepUses()
  }

  /** What cannot be stored now is stored with the next use. */
  async #keepUses(): Promise<void> {
    if (this.#parts.readOnly()) return
    const uses = this.#parts.keys.takeUses()
    if (uses.length === 0) return
    await this.#parts.shards.askOne(KEY_SHARD, { kind: 'apiKeysUsed', uses, options: {} })
  }
}

/** Whether who is admitted is known by the settings alone. */
export function isOfSettingsAlone({ key, user }: Principal): boolean {
  return key === undefined && user === undefined
}

/** The shard that says whether the credential of somebody is in force, and tells of its end. */
export function shardOfCredential({ user }: Principal, shards: Pick<Shards, 'shardOf'>): number {
  return user === undefined ? KEY_SHARD : shards.shardOf(user.namespace.agent)
}

/** Whether it is not known any more if the credential of somebody is in force: its shard is away, and not only moving. */
export function isUnknown(principal: Principal, shards: Pick<Shards, 'shardOf' | 'lastingRefusal'>): boolean {
  if (isOfSettingsAlone(principal)) return false
  return shards.lastingRefusal(shardOfCredential(principal, shards)) !== undefined
}
