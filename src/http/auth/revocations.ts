import type { TokenUser } from '../../routes/route.js'
import type { Revocation } from '../../protocol/auth-messages.js'
import type { Clock } from '../../base/clock.js'
import { limits } from '../../base/limits.js'

/** How long something stays ended: by the time of day, at which tokens expire, and by a clock that never jumps. */
interface Until {
  wallMs: number
  steadyMs: number
}

/**
 * Sessions, tokens and users that have ended before their tokens expire (contract.md 6.2). The shards keep them too
 * and tell of them at the start. One is forgotten when no token can name it any more: not before as much time has
 * passed by a clock that never jumps, so that a time of day which is ahead for a while brings nothing back.
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

  /** Whether the token, its session or its user has ended. */
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
    if (steadyMs - this.#sweptAtMs < limits.endedSweepMs) return
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
