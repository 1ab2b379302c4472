import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Principal, TicketIssuer } from '../routes/route.js'

/** Single-use stream tickets (contract.md 5), in memory: they live a minute. */
export class Tickets implements TicketIssuer {
  readonly #clock: Clock
  // A Map keeps the order of issue, which is the order of expiry.
  readonly #issued = new Map<string, { principal: Principal; expiresAtMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A new ticket; 503 when too many are unused. */
  issue(principal: Principal): string | Refusal {
    this.#dropExpired()
    if (this.#issued.size >= limits.streamTicketsMax) {
      return refuse('overloaded', 'Expected fewer unused tickets', { retryAfterSecs: 1 })
    }
    const ticket = randomBytes(24).toString('base64url')
    this.#issued.set(ticket, { principal, expiresAtMs: this.#clock() + limits.streamTicketSecs * 1000 })
    return ticket
  }

  /** Whose ticket it is, once. */
  redeem(ticket: string): Principal | undefined {
    this.#dropExpired()
    const issued = this.#issued.get(ticket)
    this.#issued.delete(ticket)
    return issued?.principal
  }

  /** Tickets of a key that was deleted open nothing. */
  revoke(principalId: string): void {
    for (const [ticket, { principal }] of this.#issued) {
      if (principal.id === principalId) this.#issued.delete(ticket)
    }
  }

  #dropExpired(): void {
    const nowMs = this.#clock()
    for (const [ticket, { expiresAtMs }] of this.#issued) {
      if (expiresAtMs > nowMs) return
      this.#issued.delete(ticket)
    }
  }
}
