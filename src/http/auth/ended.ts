import type { TokenUser } from '../../routes/route.js'
import type { Ended } from '../../protocol/auth-messages.js'
import type { Clock } from '../../base/clock.js'
import { limits } from '../../base/limits.js'

/**
 * Sessions, tokens and users that have ended before their tokens expire (contract.md 6.2). The shards keep them too
 * and tell of them at the start. One is forgotten when no token can name it any more.
 */
export class EndedTokens {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, number>()
  #sweptAtMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(namespaceId: string, { what, id, untilMs }: Ended): void {
    this.#sweep()
    this.#untilMs.set(keyOf(namespaceId, what, id), untilMs)
  }

  /** Whether the token, its session or its user has ended. */
  has({ namespace, claims }: TokenUser): boolean {
    if (this.#untilMs.size === 0) return false
    const { id } = namespace
    return (
      this.#untilMs.has(keyOf(id, 'sid', claims.sid)) ||
      this.#untilMs.has(keyOf(id, 'jti', claims.jti)) ||
      this.#untilMs.has(keyOf(id, 'sub', claims.sub))
    )
  }

  get size(): number {
    return this.#untilMs.size
  }

  #sweep(): void {
    const nowMs = this.#clock()
    if (nowMs - this.#sweptAtMs < limits.endedSweepMs) return
    this.#sweptAtMs = nowMs
    for (const [key, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(key)
  }
}

function keyOf(namespaceId: string, what: Ended['what'], id: string): string {
  return `${namespaceId}\0${what}:${id}`
}
