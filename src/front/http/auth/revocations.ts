import type { TokenUser } from '../../routes/route.js'
import type { Revocation } from '../../../protocol/auth-messages.js'
import type { Clock } from '../../../base/clock.js'
import { limits } from '../../../base/limits/limits.js'

/** When a revocation is forgotten: by the wall clock, by which tokens expire, and by a monotonic clock. */
interface Until {
  wallMs: number
  steadyMs: number
}

/**
 * Sessions, tokens and users that were ended before their tokens expire (docs/adr/0010-auth-state.md). The
 * shards store them as well, and send them at the start. A revocation is forgotten when all tokens that it
 * can concern have expired, by the wall clock and by a monotonic clock: setting back a wall clock that was
 * ahead makes no revoked token valid again.
 */
export class Revocations {
  readonly #clock: Clock
  readonly #steadyClock: Clock
  readonly #until = new Map<string, Until>()
  #sweptAtMs = -Infinity

  constructor(clock: Clock, steadyClock: Clock) {
    this.#clock = clock
    this.#steadyClock = steadyClock
  }

  add(namespaceId: string, { what, id, untilMs }: Revocation): void {
    this.#sweep()
    const steadyMs = this.#steadyClock() + untilMs - this.#clock()
    this.#until.set(keyOf(namespaceId, what, id), { wallMs: untilMs, steadyMs })
  }

  has({ namespace, claims }: TokenUser): boolean {
    if (this.#until.size === 0) return false
    const { id } = namespace
    return (
      this.#until.has(keyOf(id, 'sid', claims.sid)) ||
      this.#until.has(keyOf(id, 'jti', claims.jti)) ||
      this.#until.has(keyOf(id, 'sub', claims.sub))
    )
  }

  get size(): number {
    return this.#until.size
  }

  #sweep(): void {
    const steadyMs = this.#steadyClock()
    if (steadyMs - this.#sweptAtMs < limits.revocationSweepMs) return
    this.#sweptAtMs = steadyMs
    const wallMs = this.#clock()
    for (const [key, until] of this.#until) {
      if (until.wallMs <= wallMs && until.steadyMs <= steadyMs) this.#until.delete(key)
    }
  }
}

function keyOf(namespaceId: string, what: Revocation['what'], id: string): string {
  return `${namespaceId}\0${what}:${id}`
}
