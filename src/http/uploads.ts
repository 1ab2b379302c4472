import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Principal, TokenUser } from '../routes/route.js'

/**
 * Ends an upload: nothing more of it is taken. What is written stays, and the answer says so. Or ends an export or
 * another long answer: nothing more of it is sent.
 */
type End = (refusal: Refusal) => void

/** Whose a request is. */
interface Held {
  principal: Principal
  /** For a user's answer: the agents whose row policies decide what it shows. */
  agents: ReadonlySet<string>
}

const noAgents: ReadonlySet<string> = new Set()

/**
 * Requests whose bodies are still arriving, and exports and large answers that are still being sent, by their principal:
 * when a key is deleted, a session ends or a token expires, they end, as streams do. Those of users end with the row
 * policies that they were made by, too.
 */
export class OpenUploads {
  readonly #open = new Map<End, Held>()
  #stillGood: (user: TokenUser) => Refusal | undefined = () => undefined
  #expiry: NodeJS.Timeout | undefined

  /** Checks the tokens of users from now on. `stillGood`: why a token is no longer valid */
  watchUsers(stillGood: (user: TokenUser) => Refusal | undefined): void {
    this.#stillGood = stillGood
    this.#expiry ??= setInterval(() => this.endOfUsers(), limits.streamExpiryMs).unref()
  }

  /**
   * Has `end` called when the credential is no longer valid, or policies of these agents change. @returns to be called
   * when everything has arrived, or was sent
   */
  hold(principal: Principal, end: End, agents = noAgents): () => void {
    this.#open.set(end, { principal, agents })
    return () => this.#open.delete(end)
  }

  /** Ends answers to users that row policies of some agents have decided about. */
  endByPolicies(isChanged: (agent: string) => boolean): void {
    for (const [end, { agents }] of this.#open) {
      if ([...agents].some(isChanged)) this.#end(end, policiesChanged)
    }
  }

  /** Ends the uploads of a key that was deleted. */
  endOf(principalId: string): void {
    for (const [end, { principal }] of this.#open) {
      if (principal.id === principalId) this.#end(end, removed)
    }
  }

  /** Ends the uploads of users whose tokens are no longer valid. */
  endOfUsers(): void {
    for (const [end, { principal }] of this.#open) {
      const { user } = principal
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

const policiesChanged = refuse('overloaded', 'The row policies are being changed, try again', {
  retryAfterSecs: 1,
})
const removed = refuse('unauthorized', 'Expected a key that this server knows')
