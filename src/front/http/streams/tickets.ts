import { randomBytes } from 'node:crypto'
import { claimsOf } from '../../../auth/jwt.js'
import type { Clock } from '../../../base/clock.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { anyOf, type Checked, fields, isFlag, isNumber, isText, optional } from '../../../base/shape.js'
import type { Principal, TicketIssuer } from '../../routes/route.js'
import { principalOf } from '../auth/tokens.js'
import { Shares } from '../../limits/shares.js'

/** Who opens a stream by a ticket: the address of the caller, and which stream, as path and query. */
export interface TicketUse {
  address: string
  stream: string
}

/** Stream tickets, wherever they are kept. */
export interface StreamTickets extends TicketIssuer {
  /** Whose ticket it is; undefined if it is none, or its first use was from another address or of another stream. */
  redeem(ticket: string, use: TicketUse): Principal | undefined | Promise<Principal | undefined>
  /** Keeps a ticket that was redeemed for a stream until the end of that stream, when what is returned is called, once. */
  hold(ticket: string, principal: Principal): (() => void) | undefined
}

interface Ticket {
  principal: Principal
  expiresAtMs: number
  /** What its first use bound it to; undefined before that. */
  use: TicketUse | undefined
  /** Streams that it has open: more than one while the server has not noticed yet that an earlier one is gone. */
  open: number
}

/** What outlives the process, by its ticket (src/data/sealed-journal.ts). */
export interface TicketFile {
  read(): ReadonlyMap<string, unknown>
  begin(source: { keys(): Iterable<string>; valueOf(ticket: string): object | undefined }): void
  /** A ticket was changed, or is no more. */
  note(ticket: string): void
  close(): void
}

/** A ticket in the file. */
const isKept = fields({
  /** `root`, `open`, or the id of a key; of a user the namespace and the claims of the token. */
  holder: anyOf(isText, fields({ namespace: fields({ id: isText, agent: isText }), claims: fields({}) })),
  expiresAtMs: isNumber,
  use: optional(fields({ address: isText, stream: isText })),
  /** Its stream was open: it did not expire then, and has its minute once the server is back. */
  isOpen: isFlag,
})
type KeptTicket = Checked<typeof isKept>

/**
 * Stream tickets, in memory, and in a file for the next process. Each lives a minute. Its first use binds it to an address
 * and a stream: a native EventSource sends the same URL when it connects again. While its stream is open it does not
 * expire, and at the end of the stream its minute begins anew.
 */
export class Tickets implements StreamTickets {
  readonly #clock: Clock
  /** Tickets without an open stream. A Map keeps the order in which they came, which is the order of expiry. */
  readonly #waiting = new Map<string, Ticket>()
  /** Tickets of open streams. */
  readonly #held = new Map<string, Ticket>()

  /** How many unused ones each principal has. */
  readonly #unused: Shares
  /** How many used ones without an open stream each principal has. */
  readonly #used: Shares
  readonly #file: TicketFile | undefined

  /** @param perPrincipal unused tickets that one principal can have: as many as it can have open streams */
  constructor(clock: Clock, perPrincipal: number, file?: TicketFile) {
    this.#clock = clock
    this.#file = file
    this.#unused = new Shares(perPrincipal)
    this.#used = new Shares(perPrincipal)
  }

  /**
   * Takes up the tickets of the process before, within the same bounds.
   * @param known who a principal is now, by the id of a key that is in force, `root` or `open`
   */
  takeUp(known: (principalId: string) => Principal | undefined): void {
    if (this.#file === undefined) return
    const nowMs = this.#clock()
    const found = [...this.#file.read()]
      .flatMap(([ticket, kept]) => (isKept(kept) ? [{ ticket, ...kept }] : []))
      .map(({ isOpen, expiresAtMs, ...one }) => ({
        ...one,
        expiresAtMs: isOpen ? this.#expiry() : expiresAtMs,
      }))
      .filter(({ expiresAtMs }) => expiresAtMs > nowMs && expiresAtMs <= this.#expiry())
      .sort((left, right) => left.expiresAtMs - right.expiresAtMs)
    for (const { ticket, holder, expiresAtMs, use } of found) {
      const principal = typeof holder === 'string' ? known(holder) : userOf(holder)
      const shares = use === undefined ? this.#unused : this.#used
      if (principal === undefined || this.#waiting.size >= limits.streamTicketsMax) continue
      if (shares.take(principal.id)) this.#waiting.set(ticket, { principal, expiresAtMs, use, open: 0 })
    }
    this.#file.begin({
      // Those of open streams first: where the file has not enough space for all, they are needed most.
      keys: () => [...this.#held.keys(), ...this.#waiting.keys()],
      valueOf: (ticket) => this.#kept(ticket),
    })
  }

  /** Keeps the tickets as they are now: those of streams that the end of the server ends have their minute after it. */
  leave(): void {
    this.#file?.close()
  }

  #kept(ticket: string): KeptTicket | undefined {
    const found = this.#waiting.get(ticket) ?? this.#held.get(ticket)
    if (found === undefined) return undefined
    const { principal, expiresAtMs, use, open } = found
    const { id, user } = principal
    const holder = user === undefined ? id : { namespace: user.namespace, claims: user.claims }
    return { holder, expiresAtMs, use, isOpen: open > 0 }
  }

  /** A new ticket; 429 too_many_streams when the principal has too many unused ones, 503 when all together have. */
  issue(principal: Principal): string | Refusal {
    this.#dropExpired()
    if (this.#waiting.size >= limits.streamTicketsMax) {
      return refuse('overloaded', 'Too many tickets wait to be used, try again', { retryAfterSecs: 1 })
    }
    if (!this.#unused.take(principal.id)) {
      return refuse('too_many_streams', 'The credential has as many unused tickets as it can have: use one', {
        retryAfterSecs: 1,
      })
    }
    const ticket = randomBytes(24).toString('base64url')
    this.#waiting.set(ticket, { principal, expiresAtMs: this.#expiry(), use: undefined, open: 0 })
    this.#file?.note(ticket)
    return ticket
  }

  /** Whose ticket it is; undefined if it is none, or its first use was from another address or of another stream. */
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
      this.#wait(ticket, found)
    }
    return found.principal
  }

  /** Keeps a ticket that was redeemed for a stream until `released` is called, once, at the end of that stream. */
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
      // It may have been revoked meanwhile.
      if (found.open === 0 && this.#held.delete(ticket)) this.#wait(ticket, found)
    }
  }

  /** Tickets of a key that was deleted open nothing. */
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

  /** Has a used ticket wait for its next use, unless its principal has as many as it can have. */
  #wait(ticket: string, found: Ticket): void {
    this.#file?.note(ticket)
    if (this.#waiting.size >= limits.streamTicketsMax || !this.#used.take(found.principal.id)) return
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
    const shares = found.use === undefined ? this.#unused : this.#used
    shares.give(found.principal.id)
  }
}

/** The user of a ticket that outlived the process; undefined where its token was of another version. */
function userOf({ namespace, claims }: Exclude<KeptTicket['holder'], string>): Principal | undefined {
  const found = claimsOf({ ...claims })
  return found && principalOf(namespace, found)
}
