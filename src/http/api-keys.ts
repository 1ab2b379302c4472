import type { ApiKeyRow } from '../protocol/api-key-messages.js'
import type { ApiKeyRegistry, Principal } from '../routes/route.js'

/** The scoped keys in memory, found by the SHA-256 of what the caller sends. */
export class ApiKeys implements ApiKeyRegistry {
  readonly #byDigest = new Map<string, Principal>()
  readonly #digests = new Map<string, string>()
  readonly #onRemoved: (principalId: string) => void
  /** Counts removals: what was found before the last one may not be there any more. */
  removals = 0

  constructor(onRemoved: (principalId: string) => void) {
    this.#onRemoved = onRemoved
  }

  find(digest: string): Principal | undefined {
    return this.#byDigest.get(digest)
  }

  add(row: ApiKeyRow): void {
    this.#digests.set(row.keyId, row.digest)
    this.#byDigest.set(row.digest, { id: row.keyId, scopes: new Set(row.scopes), agents: row.agents })
  }

  remove(keyId: string): void {
    const digest = this.#digests.get(keyId)
    if (digest === undefined) return
    this.#digests.delete(keyId)
    this.#byDigest.delete(digest)
    this.removals++
    this.#onRemoved(keyId)
  }
}
