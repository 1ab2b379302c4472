import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Principal, TokenUser } from '../routes/route.js'

/**
 * Ends an upload: nothing more of it is taken. What is written stays, and the answer says so. Or ends an export:
 * nothing more of it is sent.
 */
type End = (refusal: Refusal) => void

/**
 * Requests whose bodies are still arriving, and exports that are still being sent, by their principal: when a key is
 * deleted, a session ends or a token expires, they end, as streams do.
 */
export class OpenUploads {
  readonly #open = new Map<End, Principal>()
  #stillGood: (user: TokenUser) => Refusal | undefined = () => undefined
  #expiry: NodeJS.Timeout | undefined

  /** Checks the tokens of users from now on. `stillGood`: why a token is no longer valid */
  watchUsers(stillGood: (user: TokenUser) => Refusal | undefined): void {
    this.#stillGood = stillGood
    this.#expiry ??= setInterval(() => this.endOfUsers(), limits.streamExpiryMs).unref()
  }

  /**
   * Has `end` called when the credential is no longer valid. @returns to be called when everything has arrived, or was
   * sent
   */
  hold(principal: Principal, end: End): () => void {
    this.#open.set(end, principal)
    return () => this.#open.delete(end)
  }

  /** Ends the uploads of a key that was deleted. */
  endOf(principalId: string): void {
    for (const [end, { id }] of this.#open) if (id === principalId) this.#end(end, removed)
  }

  /** Ends the uploads of users whose tokens are no longer valid. */
  endOfUsers(): void {
    for (const [end, { user }] of this.#open) {
      const refusal = user === undefined ? undefined : this.#stillGood(user)
      if (refusal !== undefined) this.#end(end, refusal)
    }
  }

  close(): void {
    clearInterval(this.#expiry)
  }

  #end(end: End, refusal: Refusal): void {
    this.#open.delete(end)
    end(refusal)
  }
}

const removed = refuse('unauthorized', 'Expected a key that this server knows')
