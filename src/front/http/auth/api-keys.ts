import { refuse, type Refusal } from '../../../base/errors.js'
import type { ApiKeyRow } from '../../../protocol/api-key-messages.js'
import type { ApiKeyUse, Principal } from '../../routes/route.js'

interface KnownKey extends Principal {
  key: ApiKeyUse
}

/** The scoped keys in memory, by the SHA-256 digest of the key text. */
export class ApiKeys {
  readonly #byDigest = new Map<string, KnownKey>()
  readonly #byId = new Map<string, KnownKey>()
  readonly #expiring = new Set<string>()
  /** Keys that were used since uses were last reported. */
  readonly #used = new Set<KnownKey>()
  readonly #onRemoved: (principalId: string) => void
  /** Number of removals: a key that was looked up before the last one may be deleted. */
  removals = 0

  constructor(onRemoved: (principalId: string) => void) {
    this.#onRemoved = onRemoved
  }

  find(digest: string): Principal | undefined {
    return this.#byDigest.get(digest)
  }

  /** Adds a key. Ignores one that exists already, because keys do not change. */
  add(row: ApiKeyRow): void {
    if (this.#byId.has(row.keyId)) return
    const key = { row, lastUsedAtMs: row.lastUsedAtMs ?? 0 }
    const known = { id: row.keyId, scopes: new Set(row.scopes), agents: row.agents, key }
    this.#byId.set(row.keyId, known)
    this.#byDigest.set(row.digest, known)
    if (row.expiresAtMs !== undefined) this.#expiring.add(row.keyId)
  }

  remove(keyId: string): void {
    const known = this.#byId.get(keyId)
    if (known === undefined) return
    this.#byId.delete(keyId)
    this.#byDigest.delete(known.key.row.digest)
    this.#expiring.delete(keyId)
    this.#used.delete(known)
    this.removals++
    this.#onRemoved(keyId)
  }

  keepOnly(keyIds: ReadonlySet<string>): void {
    for (const keyId of this.#byId.keys()) if (!keyIds.has(keyId)) this.remove(keyId)
  }

  byId(keyId: string): Principal | undefined {
    return this.#byId.get(keyId)
  }

  isValid(keyId: string, nowMs: number): boolean {
    const known = this.#byId.get(keyId)
    return known !== undefined && !isExpired(known.key.row, nowMs)
  }

  /** Whether an unexpired key has `admin:*` and is not limited to agents. */
  hasAdmin(nowMs: number): boolean {
    for (const { scopes, agents, key } of this.#byId.values()) {
      if (scopes.has('admin:*') && agents.length === 0 && !isExpired(key.row, nowMs)) return true
    }
    return false
  }

  /** Unix milliseconds of each key's last use at this front; 0 for never. */
  lastUses(keyIds: readonly string[]): number[] {
    return keyIds.map((keyId) => this.#byId.get(keyId)?.key.lastUsedAtMs ?? 0)
  }

  /** Records a use of a key; 401 if it has expired. Other principals pass unchanged. */
  use(principal: Principal, nowMs: number): Principal | Refusal {
    const { key } = principal
    if (key === undefined) return principal
    if (isExpired(key.row, nowMs)) return expired
    key.lastUsedAtMs = nowMs
    const known = this.#byId.get(key.row.keyId)
    if (known !== undefined) this.#used.add(known)
    return principal
  }

  /** Ends streams and uploads of expired keys. The keys stay listed until they are deleted. */
  endExpired(nowMs: number): void {
    for (const keyId of this.#expiring) {
      const known = this.#byId.get(keyId)
      if (known === undefined || !isExpired(known.key.row, nowMs)) continue
      this.#expiring.delete(keyId)
      this.#onRemoved(keyId)
    }
  }

  /** Returns and clears the uses since the last call, as Unix milliseconds. */
  takeUses(): [keyId: string, atMs: number][] {
    const uses = [...this.#used].map(({ id, key }): [string, number] => [id, key.lastUsedAtMs])
    this.#used.clear()
    return uses
  }
}

const expired = refuse('unauthorized', 'The key has expired')

export function isExpired({ expiresAtMs }: ApiKeyRow, nowMs: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs
}
