import { randomBytes } from 'node:crypto'
import { claimsOf } from '../../../auth/jwt.js'
import type { Clock } from '../../../base/clock.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { Quota } from '../../../base/quota.js'
import { anyOf, type Checked, fields, isFlag, isNumber, isText, optional } from '../../../base/shape.js'
import type { Principal, TicketIssuer } from '../../routes/route.js'
import { principalOf } from '../auth/tokens.js'

/** The use of a ticket: the address of the caller, and the stream as path and query. */
export interface TicketUse {
  address: string
  stream: string
}

/** Stream tickets, of this front or of the main thread. */
export interface StreamTickets extends TicketIssuer {
  /**
   * The principal of a ticket; undefined if unknown, or first used from another address or for another
   * stream.
   */
  redeem(ticket: string, use: TicketUse): Principal | undefined | Promise<Principal | undefined>
  /**
   * Holds a redeemed ticket while its stream is open. Call the returned function once, at the end of the
   * stream.
   */
  hold(ticket: string, principal: Principal): (() => void) | undefined
}

interface Ticket {
  principal: Principal
  expiresAtMs: number
  /** The address and stream of its first use; undefined if unused. */
  use: TicketUse | undefined
  /** Open streams of the ticket: more than one until the server notices that an earlier one was closed. */
  open: number
}

/** The tickets that survive a restart (src/data/sealed-journal.ts). */
export interface TicketFile {
  read(): ReadonlyMap<string, unknown>
  begin(source: { keys(): Iterable<string>; valueOf(ticket: string): object | undefined }): void
  /** Records that a ticket was changed or removed. */
  note(ticket: string): void
  close(): void
}

const isStored = fields({
  /** `root`, `open`, or the id of a key; for a user the namespace and the claims of the token. */
  holder: anyOf(isText, fields({ namespace: fields({ id: isText, agent: isText }), claims: fields({}) })),
  expiresAtMs: isNumber,
  use: optional(fields({ address: isText, stream: isText })),
  /** Its stream was open, so the ticket gets a new lifetime when the server restarts. */
  isOpen: isFlag,
})
type StoredTicket = Checked<typeof isStored>

/**
 * Stream tickets, in memory and in a file for the next process. A ticket is valid for a minute. Its first use
 * binds it to an address and a stream, because a native EventSource reconnects with the same URL. A ticket
 * does not expire while its stream is open, and gets a new minute when the stream ends.
 */
export class Tickets implements StreamTickets {
  readonly #clock: Clock
  /** Tickets without an open stream, in insertion order, which is the order of expiry. */
  readonly #waiting = new Map<string, Ticket>()
  readonly #held = new Map<string, Ticket>()

  readonly #unused: Quota
  /** Number of used tickets without an open stream per principal. */
  readonly #used: Quota
  readonly #file: TicketFile | undefined

  /** @param perPrincipal the most unused tickets of a principal: as many as it can have open streams */
  constructor(clock: Clock, perPrincipal: number, file?: TicketFile) {
    this.#clock = clock
    this.#file = file
    this.#unused = new Quota({ perHolderMax: perPrincipal })
    this.#used = new Quota({ perHolderMax: perPrincipal })
  }

  /**
   * Restores the tickets of the previous process, within the same limits.
   * @param known returns the current principal of a valid key's id, of `root` or `open`
   */
  restore(known: (principalId: string) => Principal | undefined): void {
    if (this.#file === undefined) return
    const nowMs = this.#clock()
    const found = [...this.#file.read()]
      .flatMap(([ticket, stored]) => (isStored(stored) ? [{ ticket, ...stored }] : []))
      .map(({ isOpen, expiresAtMs, ...stored }) => ({
        ...stored,
        expiresAtMs: isOpen ? this.#expiry() : expiresAtMs,
      }))
      .filter(({ expiresAtMs }) => expiresAtMs > nowMs && expiresAtMs <= this.#expiry())
      .sort((left, right) => left.expiresAtMs - right.expiresAtMs)
    for (const { ticket, holder, expiresAtMs, use } of found) {
      const principal = typeof holder === 'string' ? known(holder) : userOf(holder)
      const quota = use === undefined ? this.#unused : this.#used
      if (principal === undefined || this.#waiting.size >= limits.streamTicketsMax) continue
      if (quota.reserve(principal.id)) this.#waiting.set(ticket, { principal, expiresAtMs, use, open: 0 })
    }
    this.#file.begin({
      // Tickets of open streams first: if the file has no space for all, these matter most.
      keys: () => [...this.#held.keys(), ...this.#waiting.keys()],
      valueOf: (ticket) => this.#stored(ticket),
    })
  }

  /**
   * Closes the file with the current tickets: those of streams that the shutdown ends get their minute after
   * it.
   */
  close(): void {
    this.#file?.close()
  }

  #stored(ticket: string): StoredTicket | undefined {
    const found = this.#waiting.get(ticket) ?? this.#held.get(ticket)
    if (found === undefined) return undefined
    const { principal, expiresAtMs, use, open } = found
    const { id, user } = principal
    const holder = user === undefined ? id : { namespace: user.namespace, claims: user.claims }
    return { holder, expiresAtMs, isOpen: open > 0, ...(use !== undefined && { use }) }
  }

  /**
   * Issues a ticket; 429 too_many_streams if the principal has too many unused ones, 503 if all principals
   * together have.
   */
  issue(principal: Principal): string | Refusal {
    this.#dropExpired()
    if (this.#waiting.size >= limits.streamTicketsMax) {
      return refuse('overloaded', 'Too many tickets are unused, try again', { retryAfterSecs: 1 })
    }
    if (!this.#unused.reserve(principal.id)) {
      return refuse(
        'too_many_streams',
        'This credential has the maximum number of unused tickets: use one first',
        {
          retryAfterSecs: 1,
        },
      )
    }
    const ticket = randomBytes(24).toString('base64url')
    this.#waiting.set(ticket, { principal, expiresAtMs: this.#expiry(), use: undefined, open: 0 })
    this.#file?.note(ticket)
    return ticket
  }

  /**
   * The principal of a ticket; undefined if unknown, or first used from another address or for another
   * stream.
   */
  redeem(ticket: string, use: TicketUse): Principal | undefined {
    this.#dropExpired()
    const found = this.#waiting.get(ticket) ?? this.#held.get(ticket)
    if (found === undefined) return undefined
    const { use: bound } = found
    if (bound !== undefined && (bound.address !== use.address || bound.stream !== use.stream))
      return undefined
    if (found.open === 0) {
      this.#drop(ticket)
      found.use = use
      this.#addWaiting(ticket, found)
    }
    return found.principal
  }

  /** Holds a redeemed ticket until the returned function is called, once, at the end of its stream. */
  hold(ticket: string, principal: Principal): (() => void) | undefined {
    const found = this.#waiting.get(ticket) ?? this.#held.get(ticket)
    if (found?.use === undefined || found.principal.id !== principal.id) return undefined
    if (found.open === 0) {
      this.#drop(ticket)
      this.#held.set(ticket, found)
    }
    found.open += 1
    this.#file?.note(ticket)
    return () => {
      found.open -= 1
      // It may have been revoked in the meantime.
      if (found.open === 0 && this.#held.delete(ticket)) this.#addWaiting(ticket, found)
    }
  }

  revoke(principalId: string): void {
    for (const [ticket, { principal }] of this.#waiting) {
      if (principal.id === principalId) this.#drop(ticket)
    }
    for (const [ticket, { principal }] of this.#held) {
      if (principal.id !== principalId) continue
      this.#held.delete(ticket)
      this.#file?.note(ticket)
    }
  }

  /** Stores a used ticket for its next use, unless its principal has too many. */
  #addWaiting(ticket: string, found: Ticket): void {
    this.#file?.note(ticket)
    if (this.#waiting.size >= limits.streamTicketsMax || !this.#used.reserve(found.principal.id)) return
    found.expiresAtMs = this.#expiry()
    this.#waiting.set(ticket, found)
  }

  #expiry(): number {
    return this.#clock() + limits.streamTicketSecs * 1000
  }

  #dropExpired(): void {
    const nowMs = this.#clock()
    for (const [ticket, { expiresAtMs }] of this.#waiting) {
      if (expiresAtMs > nowMs) return
      this.#drop(ticket)
    }
  }

  #drop(ticket: string): void {
    const found = this.#waiting.get(ticket)
    if (found === undefined) return
    this.#waiting.delete(ticket)
    this.#file?.note(ticket)
    const quota = found.use === undefined ? this.#unused : this.#used
    quota.release(found.principal.id)
  }
}

/** The user of a stored ticket; undefined if the claims of its token have an outdated form. */
function userOf({ namespace, claims }: Exclude<StoredTicket['holder'], string>): Principal | undefined {
  const found = claimsOf({ ...claims })
  return found && principalOf(namespace, found)
}
