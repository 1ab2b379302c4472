import { CallerTurns } from '../../base/caller-turns.js'
import { steadyClock, type Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'
import type { Principal, TokenUser } from '../routes/route.js'

/**
 * Ends an upload, an export or a large answer: nothing more of it is read or sent. What an upload has written
 * stays, and its answer reports it.
 */
type End = (refusal: Refusal) => void

interface Holding {
  principal: Principal
  /** Whose quota of body bytes it uses: the principal's, or that of the address of an unknown client. */
  holder: string
  /** For a user's answer: the agents whose row policies apply to it. */
  agents?: ReadonlySet<string> | undefined
}

/** A request whose body is arriving, or whose export or large answer is being sent. */
export class Transfer implements BodyMemory {
  readonly #turns: MemoryTurns
  readonly #holder: string
  #end: End | undefined
  #onRelease: () => void
  /** Bytes in memory. */
  #used = 0
  /** Bytes that it may use without reserving more. */
  #reserved = 0

  /**
   * @param about `holder`: whose quota of body bytes it uses; `onRelease`: called once, when it is released
   */
  constructor(
    turns: MemoryTurns,
    { holder, end, onRelease }: { holder: string; end: End; onRelease(): void },
  ) {
    this.#turns = turns
    this.#holder = holder
    this.#end = end
    this.#onRelease = onRelease
  }

  /** Its bytes in the quota of its holder. */
  get #heldBytes(): number {
    return Math.max(this.#used, this.#reserved)
  }

  reserve(bytes: number): boolean {
    if (this.#end === undefined) return false
    const missing = this.#used + bytes - this.#heldBytes
    if (missing > 0 && !this.#turns.reserve(this.#holder, missing)) {
      this.end(tooManyBytes)
      return false
    }
    this.#used += bytes
    return true
  }

  release(bytes: number): void {
    this.#lower(this.#used - bytes, this.#reserved)
  }

  /**
   * Reserves bytes for what will be added, and waits for its turn while the bodies of the holder take too much
   * memory.
   * @param isCancelled whether the request was cancelled in the meantime
   * @returns 503 if too many requests of the holder wait, or this one has waited too long
   */
  async reserveWhenFree(bytes: number, isCancelled = () => false): Promise<Refusal | undefined> {
    const missing = this.#used + bytes - this.#heldBytes
    if (missing <= 0) return undefined
    return this.#turns.reserveWhenFree({
      holder: this.#holder,
      bytes: missing,
      heldBytes: () => this.#heldBytes,
      isCancelled: () => this.#end === undefined || isCancelled(),
      onReserved: () => (this.#reserved = this.#heldBytes + missing),
    })
  }

  /** Keeps at most so many bytes reserved from now on. */
  keep(bytes: number): void {
    this.#lower(this.#used, bytes)
  }

  /** Releases what is neither used nor reserved any more. */
  #lower(used: number, reserved: number): void {
    const before = this.#heldBytes
    this.#used = Math.max(0, used)
    this.#reserved = Math.min(this.#reserved, reserved)
    if (this.#heldBytes < before) this.#turns.release(this.#holder, before - this.#heldBytes)
  }

  /** Ends it, unless it has ended. Its bytes stay reserved until its holder finishes it. */
  end(refusal: Refusal): void {
    const end = this.#end
    this.#end = undefined
    end?.(refusal)
  }

  /**
   * Call when nothing of it is in memory any more: it was processed or sent, or the client has disconnected.
   */
  finish(): void {
    this.#end = undefined
    this.#lower(0, 0)
    this.#onRelease()
    this.#onRelease = doNothing
  }
}

const doNothing = () => {}

/**
 * Requests whose bodies are arriving, and exports and large answers that are being sent, by principal. Like
 * streams, they end when the key is deleted, the session ends or the token expires. Those of users also end
 * when row policies of their agents change.
 */
export class OpenTransfers {
  readonly #open = new Map<Transfer, Holding>()
  readonly #turns: MemoryTurns
  #stillGood: (user: TokenUser) => Refusal | undefined = () => undefined
  #expiry: NodeJS.Timeout | undefined

  /** @param bytes limits the bytes of bodies in memory, in total and per holder */
  constructor(bytes: Quota) {
    this.#turns = new MemoryTurns(bytes)
  }

  /** Starts checking the tokens of users. @param revalidate returns why a token is no longer valid */
  watchUsers(stillGood: (user: TokenUser) => Refusal | undefined): void {
    this.#stillGood = stillGood
    this.#expiry ??= setInterval(() => this.endInvalidUsers(), limits.streamExpiryMs).unref()
  }

  /**
   * Calls `end` when the credential becomes invalid, when bodies take too much memory, or when row policies
   * of its agents change.
   */
  begin(holding: Holding, end: End): Transfer {
    const onRelease = () => this.#open.delete(transfer)
    const transfer = new Transfer(this.#turns, { holder: holding.holder, end, onRelease })
    this.#open.set(transfer, holding)
    return transfer
  }

  /** Ends answers to users to which changed row policies applied. */
  endPoliciesChanged(isChanged: (agent: string) => boolean): void {
    for (const [transfer, { agents = [] }] of this.#open) {
      if ([...agents].some(isChanged)) this.#end(transfer, policiesChanged)
    }
  }

  /** Ends those of a deleted key. */
  endPrincipal(principalId: string): void {
    for (const [transfer, { principal }] of this.#open) {
      if (principal.id === principalId) this.#end(transfer, keyEnded)
    }
  }

  endInvalidUsers(): void {
    for (const [transfer, { principal }] of this.#open) {
      const { user } = principal
      const refusal = user === undefined ? undefined : this.#stillGood(user)
      if (refusal !== undefined) this.#end(transfer, refusal)
    }
  }

  close(): void {
    clearInterval(this.#expiry)
  }

  #end(transfer: Transfer, refusal: Refusal): void {
    this.#open.delete(transfer)
    transfer.end(refusal)
  }
}

const policiesChanged = refuse('overloaded', 'The row policies are being changed, try again', {
  retryAfterSecs: 1,
})
const keyEnded = refuse('unauthorized', 'The key was deleted or has expired')
const tooManyBytes = refuse('overloaded', 'Too many bytes of request bodies are in memory, try again', {
  retryAfterSecs: 1,
})

/** Bytes that a request needs. */
interface Need {
  /** Whose limit they count for. */
  holder: string
  bytes: number
  /** Bytes of the request that are counted already: those that have arrived. */
  heldBytes(): number
  /** Whether the request was cancelled, so that nothing is reserved any more. */
  isCancelled(): boolean
  /** Called when the bytes are reserved, before anything else can happen to the request. */
  onReserved(): void
}

interface Waiting extends Need {
  /** When all requests of its holder are refused, unless one of them gets memory before. */
  end: { atMs: number }
  resolve(refusal: Refusal | undefined): void
}

const tooMany = refuse('overloaded', 'Too many requests of this caller are waiting for memory, try again', {
  retryAfterSecs: 1,
})
const tooLong = refuse('overloaded', 'The request has waited too long for memory, try again', {
  retryAfterSecs: 1,
})

/** Requests that wait for the memory that they need. Holders take turns. */
export class MemoryTurns {
  readonly #quota: Quota
  readonly #clock: Clock
  readonly #turns = new CallerTurns<Waiting>()
  #poll: NodeJS.Timeout | undefined

  constructor(quota: Quota, clock: Clock = steadyClock) {
    this.#quota = quota
    this.#clock = clock
  }

  /** Returns false, and reserves nothing, if there is no capacity now. */
  reserve(holder: string, bytes: number): boolean {
    return this.#quota.reserve(holder, bytes)
  }

  release(holder: string, bytes: number): void {
    this.#quota.release(holder, bytes)
    this.next()
  }

  /** Reserves bytes as soon as there is capacity. @returns undefined when they are reserved */
  reserveWhenFree(need: Need): Promise<Refusal | undefined> {
    const waiting = [...this.#turns.of(need.holder)]
    if (waiting.length === 0 && this.#tryReserve(need)) return Promise.resolve(undefined)
    const others = waiting.filter((other) => !other.isCancelled())
    // If those that wait held more, the others could end and the first one would still not have its turn.
    const heldBytes = others.reduce((sum, other) => sum + other.heldBytes(), need.heldBytes())
    const isFull = others.length >= limits.bodyMemoryQueueMax || heldBytes > limits.bodyMemorySpareBytes
    if (isFull) return Promise.resolve(tooMany)
    const end = waiting[0]?.end ?? { atMs: this.#waitEndMs() }
    this.#poll ??= setInterval(() => this.next(), limits.bodyMemoryPollMs)
    return new Promise((resolve) => this.#turns.push(need.holder, { ...need, end, resolve }))
  }

  /** Looks for released memory: also at intervals, because other fronts release memory, too. */
  next(): void {
    if (this.#turns.length === 0) return
    this.#refuse((need) => need.isCancelled())
    const reserveNext = () => this.#turns.take((need) => this.#tryReserve(need))
    for (let need = reserveNext(); need !== undefined; need = reserveNext()) {
      need.end.atMs = this.#waitEndMs()
      need.resolve(undefined)
    }
    this.#refuse(({ end }) => this.#clock() >= end.atMs)
    if (this.#turns.length > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  #refuse(isRefused: (need: Waiting) => boolean): void {
    for (const need of this.#turns.remove(isRefused)) need.resolve(tooLong)
  }

  #waitEndMs(): number {
    return this.#clock() + limits.bodyMemoryWaitMs
  }

  #tryReserve({ holder, bytes, onReserved }: Need): boolean {
    if (!this.#quota.reserve(holder, bytes + limits.bodyMemorySpareBytes)) return false
    this.#quota.release(holder, limits.bodyMemorySpareBytes)
    onReserved()
    return true
  }
}
