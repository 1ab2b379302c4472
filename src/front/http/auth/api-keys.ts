import { refuse, type Refusal } from '../../../base/errors.js'
import type { ApiKeyRow } from '../../../protocol/api-key-messages.js'
import type { ApiKeyUse, Principal } from '../../routes/route.js'

/** A scoped key as credentials are checked against it. */
interface KnownKey extends Principal {
  key: ApiKeyUse
}

/** The scoped keys in memory, found by the SHA-256 of what the caller sends. */
export class ApiKeys {
  readonly #byDigest = new Map<string, KnownKey>()
  readonly #byId = new Map<string, KnownKey>()
  /** Ids of keys that will expire. */
  readonly #expiring = new Set<string>()
  /** Keys that were used since the uses were last stored. */
  readonly #used = new Set<KnownKey>()
  readonly #onRemoved: (principalId: string) => void
  /** Counts removals: a key that was found before the last one may be gone. */
  removals = 0

  constructor(onRemoved: (principalId: string) => void) {
    this.#onRemoved = onRemoved
  }

  find(digest: string): Principal | undefined {
    return this.#byDigest.get(digest)
  }

  /** Adds a key; one that exists stays as it is, as keys do not change. */
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

  /** Removes all keys but those named. */
  keepOnly(keyIds: ReadonlySet<string>): void {
    for (const keyId of this.#byId.keys()) if (!keyIds.has(keyId)) this.remove(keyId)
  }

  /** The key of this id. */
  ofId(keyId: string): Principal | undefined {
    return this.#byId.get(keyId)
  }

  /** Whether a key is there and has not expired. */
  isValid(keyId: string, nowMs: number): boolean {
    const known = this.#byId.get(keyId)
    return known !== undefined && !isExpired(known.key.row, nowMs)
  }

  /** Whether a key that has not expired may do everything everywhere. */
  hasAdmin(nowMs: number): boolean {
    for (const { scopes, agents, key } of this.#byId.values()) {
      if (scopes.has('admin:*') && agents.length === 0 && !isExpired(key.row, nowMs)) return true
    }
    return false
  }

  /** When keys were last used at this front, Unix milliseconds; 0 for never. */
  lastUses(keyIds: readonly string[]): number[] {
    return keyIds.map((keyId) => this.#byId.get(keyId)?.key.lastUsedAtMs ?? 0)
  }

  /** Notes that a key is used; 401 if it has expired. Other principals pass. */
  use(principal: Principal, nowMs: number): Principal | Refusal {
    const { key } = principal
    if (key === undefined) return principal
    if (isExpired(key.row, nowMs)) return expired
    key.lastUsedAtMs = nowMs
    const known = this.#byId.get(key.row.keyId)
    if (known !== undefined) this.#used.add(known)
    return principal
  }

  /** Ends streams and uploads of keys that have expired. The keys stay in lists until they are deleted. */
  endExpired(nowMs: number): void {
    for (const keyId of this.#expiring) {
      const known = this.#byId.get(keyId)
      if (known === undefined || !isExpired(known.key.row, nowMs)) continue
      this.#expiring.delete(keyId)
      this.#onRemoved(keyId)
    }
  }

  /** When keys were last used, for those used since the last call. */
  takeUses(): [keyId: string, atMs: number][] {
    const uses = [...this.#used].map(({ id, key }): [string, number] => [id, key.lastUsedAtMs])
    this.#used.clear()
    return uses
  }
}

const expired = refuse('unauthorized', 'Expected a key that has not expired')

/** Whether the time of a key is over. */
export function isExpired({ expiresAtMs }: ApiKeyRow, nowMs: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs
}
