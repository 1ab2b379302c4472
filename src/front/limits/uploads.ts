import { refuse, type Refusal } from '../../base/errors.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'
import type { Principal, TokenUser } from '../routes/route.js'
import { MemoryTurns } from './memory-turns.js'

/**
 * Ends an upload, an export or a large answer: nothing more of it is read or sent. What an upload has written
 * stays, and its answer reports it.
 */
type End = (refusal: Refusal) => void

interface Owned {
  principal: Principal
  /** Whose quota of body bytes it uses: the principal's, or that of the address of an unknown client. */
  owner: string
  /** For a user's answer: the agents whose row policies apply to it. */
  agents?: ReadonlySet<string> | undefined
}

/** The memory of all bodies, and the requests that wait for it. */
interface Memory {
  bound: Quota
  turns: MemoryTurns
}

/** A request whose body is arriving, or whose export or large answer is being sent. */
export class Upload implements BodyMemory {
  readonly #bound: Quota
  readonly #turns: MemoryTurns
  readonly #owner: string
  #end: End | undefined
  #onRelease: () => void
  /** Bytes in memory. */
  #used = 0
  /** Bytes that it may use without asking for more. */
  #reserved = 0
  /** The larger of both, as its owner's limit counts it. */
  #counted = 0

  /**
   * @param about `owner`: whose quota of body bytes it uses; `onRelease`: called once, when it is released
   */
  constructor(
    { bound, turns }: Memory,
    { owner, end, onRelease }: { owner: string; end: End; onRelease(): void },
  ) {
    this.#bound = bound
    this.#turns = turns
    this.#owner = owner
    this.#end = end
    this.#onRelease = onRelease
  }

  add(bytes: number): boolean {
    if (this.#end === undefined) return false
    const missing = this.#used + bytes - this.#counted
    if (missing > 0 && !this.#bound.reserve(this.#owner, missing)) {
      this.end(tooManyBytes)
      return false
    }
    this.#counted += Math.max(missing, 0)
    this.#used += bytes
    return true
  }

  release(bytes: number): void {
    this.#used -= Math.min(bytes, this.#used)
    this.#count()
  }

  /**
   * Reserves bytes for what will be added, and waits for its turn while the bodies of the owner take too much
   * memory.
   * @param isCancelled whether the request was cancelled in the meantime
   * @returns 503 if too many requests of the owner wait, or this one has waited too long
   */
  async reserve(bytes: number, isCancelled = () => false): Promise<Refusal | undefined> {
    const missing = this.#used + bytes - this.#counted
    if (missing <= 0) return undefined
    return this.#turns.reserve({
      owner: this.#owner,
      bytes: missing,
      heldBytes: () => this.#counted,
      isCancelled: () => this.#end === undefined || isCancelled(),
      onTaken: () => {
        this.#counted += missing
        this.#reserved = this.#counted
      },
    })
  }

  /** Reserves only so many bytes from now on. */
  keep(bytes: number): void {
    this.#reserved = bytes
    this.#count()
  }

  /** Releases what is counted, but neither used nor reserved. */
  #count(): void {
    const excess = this.#counted - Math.max(this.#used, this.#reserved)
    if (excess <= 0) return
    this.#counted -= excess
    this.#bound.release(this.#owner, excess)
    this.#turns.next()
  }

  /** Ends it, unless it has ended. Its bytes stay counted until its owner finishes it. */
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
    this.#used = 0
    this.keep(0)
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
export class OpenUploads {
  readonly #open = new Map<Upload, Owned>()
  readonly #memory: Memory
  #stillGood: (user: TokenUser) => Refusal | undefined = () => undefined
  #expiry: NodeJS.Timeout | undefined

  /** @param bytes limits the bytes of bodies in memory, in total and per owner */
  constructor(bytes: Quota) {
    this.#memory = { bound: bytes, turns: new MemoryTurns(bytes) }
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
  hold(owned: Owned, end: End): Upload {
    const onRelease = () => this.#open.delete(upload)
    const upload = new Upload(this.#memory, { owner: owned.owner, end, onRelease })
    this.#open.set(upload, owned)
    return upload
  }

  /** Ends answers to users to which changed row policies applied. */
  endPoliciesChanged(isChanged: (agent: string) => boolean): void {
    for (const [upload, { agents = [] }] of this.#open) {
      if ([...agents].some(isChanged)) this.#end(upload, policiesChanged)
    }
  }

  /** Ends the uploads of a deleted key. */
  endPrincipal(principalId: string): void {
    for (const [upload, { principal }] of this.#open) {
      if (principal.id === principalId) this.#end(upload, keyEnded)
    }
  }

  endInvalidUsers(): void {
    for (const [upload, { principal }] of this.#open) {
      const { user } = principal
      const refusal = user === undefined ? undefined : this.#stillGood(user)
      if (refusal !== undefined) this.#end(upload, refusal)
    }
  }

  close(): void {
    clearInterval(this.#expiry)
  }

  #end(upload: Upload, refusal: Refusal): void {
    this.#open.delete(upload)
    upload.end(refusal)
  }
}

const policiesChanged = refuse('overloaded', 'The row policies are being changed, try again', {
  retryAfterSecs: 1,
})
const keyEnded = refuse('unauthorized', 'The key was deleted or has expired')
const tooManyBytes = refuse('overloaded', 'Too many bytes of request bodies are in memory, try again', {
  retryAfterSecs: 1,
})
