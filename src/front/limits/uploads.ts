import { refuse, type Refusal } from '../../base/errors.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'
import { limits } from '../../base/limits/limits.js'
import type { Principal, TokenUser } from '../routes/route.js'
import type { BoundedBytes } from './bounded-bytes.js'

/**
 * Ends an upload: nothing more of it is taken. What is written stays, and the answer says so. Or ends an export or
 * another long answer: nothing more of it is sent.
 */
type End = (refusal: Refusal) => void

/** Whose a request is. */
interface Held {
  principal: Principal
  /** Whose share of the memory of bodies it takes: the principal, or the address of an unknown client. */
  owner: string
  /** For a user's answer: the agents whose row policies decide what it shows. */
  agents?: ReadonlySet<string> | undefined
}

/** A request whose body is arriving, or whose export is being sent. */
export class Upload implements BodyMemory {
  readonly #bound: BoundedBytes
  readonly #owner: string
  #end: End | undefined
  #onRelease: () => void
  #bytes = 0

  /** @param about `owner`: whose share of all bodies its bytes take; `onRelease`: called once, when it is released */
  constructor(
    bound: BoundedBytes,
    { owner, end, onRelease }: { owner: string; end: End; onRelease(): void },
  ) {
    this.#bound = bound
    this.#owner = owner
    this.#end = end
    this.#onRelease = onRelease
  }

  add(bytes: number): boolean {
    if (this.#end === undefined) return false
    if (bytes === 0) return true
    if (!this.#bound.take(this.#owner, bytes)) {
      this.end(tooManyBytes)
      return false
    }
    this.#bytes += bytes
    return true
  }

  give(bytes: number): void {
    const given = Math.min(bytes, this.#bytes)
    this.#bytes -= given
    if (given > 0) this.#bound.give(this.#owner, given)
  }

  /** Ends it, unless it has ended. Its bytes are counted until it is released. */
  end(refusal: Refusal): void {
    const end = this.#end
    this.#end = undefined
    end?.(refusal)
  }

  /** Everything has arrived and is carried out, or was sent, or the client has gone: nothing of it is in memory. */
  release(): void {
    this.#end = undefined
    this.give(this.#bytes)
    this.#onRelease()
    this.#onRelease = () => {}
  }
}

/**
 * Requests whose bodies are still arriving, and exports and large answers that are still being sent, by their principal:
 * when a key is deleted, a session ends or a token expires, they end, as streams do. Those of users end with the row
 * policies that they were made by, too.
 */
export class OpenUploads {
  readonly #open = new Map<Upload, Held>()
  readonly #bytes: BoundedBytes
  #stillGood: (user: TokenUser) => Refusal | undefined = () => undefined
  #expiry: NodeJS.Timeout | undefined

  /** @param bytes bounds the bytes of bodies that are in memory, in all and for each owner */
  constructor(bytes: BoundedBytes) {
    this.#bytes = bytes
  }

  /** Checks the tokens of users from now on. `stillGood`: why a token is no longer valid */
  watchUsers(stillGood: (user: TokenUser) => Refusal | undefined): void {
    this.#stillGood = stillGood
    this.#expiry ??= setInterval(() => this.endOfUsers(), limits.streamExpiryMs).unref()
  }

  /**
   * Has `end` called when the credential is no longer valid, when bodies take too much memory, or when policies of its
   * agents change.
   */
  hold(held: Held, end: End): Upload {
    const onRelease = () => this.#open.delete(upload)
    const upload = new Upload(this.#bytes, { owner: held.owner, end, onRelease })
    this.#open.set(upload, held)
    return upload
  }

  /** The same for a body whose principal is not known yet. */
  holdUnknown(owner: string, end: End): Upload {
    return new Upload(this.#bytes, { owner, end, onRelease: () => {} })
  }

  /** Ends answers to users that row policies of some agents have decided about. */
  endByPolicies(isChanged: (agent: string) => boolean): void {
    for (const [upload, { agents = [] }] of this.#open) {
      if ([...agents].some(isChanged)) this.#end(upload, policiesChanged)
    }
  }

  /** Ends the uploads of a key that was deleted. */
  endOf(principalId: string): void {
    for (const [upload, { principal }] of this.#open) {
      if (principal.id === principalId) this.#end(upload, removed)
    }
  }

  /** Ends the uploads of users whose tokens are no longer valid. */
  endOfUsers(): void {
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
const removed = refuse('unauthorized', 'Expected a key that this server knows')
const tooManyBytes = refuse('overloaded', 'Too many bytes of request bodies are arriving, try again', {
  retryAfterSecs: 1,
})
