import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits.js'
import type { Principal, TicketIssuer } from '../../routes/route.js'
import { Shares } from './shares.js'

/** Single-use stream tickets, in memory: they live a minute. */
export class Tickets implements TicketIssuer {
  readonly #clock: Clock
  // A Map keeps the order of issue, which is the order of expiry.
  readonly #issued = new Map<string, { principal: Principal; expiresAtMs: number }>()

  /** How many unused ones each principal has. */
  readonly #shares: Shares

  /** @param perPrincipal unused tickets that one principal can have: as many as it can have open streams */
  constructor(clock: Clock, perPrincipal: number) {
    this.#clock = clock
    this.#shares = new Shares(perPrincipal)
  }

  /** A new ticket; 429 too_many_streams when the principal has too many unused ones, 503 when all together have. */
  issue(principal: Principal): string | Refusal {
    this.#dropExpired()
    if (this.#issued.size >= limits.streamTicketsMax) {
      return refuse('overloaded', 'Too many tickets wait to be used, try again', { retryAfterSecs: 1 })
    }
    if (!this.#shares.take(principal.id)) {
      return refuse('too_many_streams', 'The credential has as many unused tickets as it can have: use one', {
        retryAfterSecs: 1,
      })
    }
    const ticket = randomBytes(24).toString('base64url')
    this.#issued.set(ticket, { principal, expiresAtMs: this.#clock() + limits.streamTicketSecs * 1000 })
    return ticket
  }

  /** Whose ticket it is, once. */
  redeem(ticket: string): Principal | undefined {
    this.#dropExpired()
    const issued = this.#issued.get(ticket)
    this.#drop(ticket)
    return issued?.principal
  }

  /** Tickets of a key that was deleted open nothing. */
  revoke(principalId: string): void {
    for (const [ticket, { principal }] of this.#issued) {
      if (principal.id === principalId) this.#drop(ticket)
    }
  }

  #dropExpired(): void {
    const nowMs = this.#clock()
    for (const [ticket, { expiresAtMs }] of this.#issued) {
      if (expiresAtMs > nowMs) return
      this.#drop(ticket)
    }
  }

  #drop(ticket: string): void {
    const issued = this.#issued.get(ticket)
    if (issued === undefined) return
    this.#issued.delete(ticket)
    this.#shares.give(issued.principal.id)
  }
}
