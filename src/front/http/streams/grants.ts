import { grantOfText, type GrantText } from '../../../auth/grant.js'
import { assert } from '../../../base/assert.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Quota } from '../../../base/quota.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { CommandOf } from '../../../protocol/messages.js'
import { unexpected } from '../../routes/answers.js'
import type { Principal, StreamRequest } from '../../routes/route.js'

/** The read grants of a user, by agent. */
export type ReadGrants = ReadonlyMap<string, GrantText>

/** How often the grants of a stream's agents are read while policies change, before the client is refused. */
const READABLE_TRIES_MAX = 4

/** Reads the grants of users' streams from the shards, and limits the memory that they take. */
export class StreamGrants {
  readonly #shards: Shards
  readonly #held: Quota
  /** Number of changes, or possible changes, of grants. */
  #changes = 0

  /** @param held counts the bytes of grants of open streams */
  constructor(shards: Shards, held: Quota) {
    this.#shards = shards
    this.#held = held
  }

  policiesChanged(): void {
    this.#changes += 1
  }

  /**
   * The read grants for the agents in the request; 403 if one of them is hidden. Reads again if policies
   * change in the meantime. @param caller id of the principal
   */
  async readableBy(request: StreamRequest, caller: string): Promise<ReadGrants | Refusal> {
    for (let tries = 0; tries < READABLE_TRIES_MAX; tries++) {
      const changes = this.#changes
      const readable = await this.#locateAll(request, caller)
      if (changes === this.#changes || 'code' in readable) return readable
    }
    return refuse('overloaded', 'The row policies are being changed, try again', { retryAfterSecs: 1 })
  }

  async #locateAll(request: StreamRequest, caller: string): Promise<ReadGrants | Refusal> {
    const readable = new Map<string, GrantText>()
    const agents = request.agents ?? []
    for (let from = 0; from < agents.length; from += limits.streamGrantsInFlightMax) {
      const slice = agents.slice(from, from + limits.streamGrantsInFlightMax)
      const outcomes = await Promise.all(
        slice.map((agent) => this.#shards.request(agent, locateCommand(agent, caller, request))),
      )
      for (const [index, agent] of slice.entries()) {
        const outcome = outcomes[index]
        assert(outcome !== undefined, 'each agent has its outcome')
        if (outcome.kind !== 'located') return unexpected(outcome)
        if (outcome.readable !== undefined) readable.set(agent, copyGrantText(outcome.readable))
      }
      if (bytesOf(readable) > limits.streamGrantBytesPerPrincipalMax) return tooManyGrants
    }
    return readable
  }

  /** Reserves the bytes of the grants of a stream; 503 if they take too much memory. */
  reserve({ id }: Principal, readable: ReadGrants | undefined): Refusal | undefined {
    return readable === undefined || this.#held.reserve(id, bytesOf(readable)) ? undefined : tooManyGrants
  }

  release({ id }: Principal, readable: ReadGrants | undefined): void {
    if (readable !== undefined) this.#held.release(id, bytesOf(readable))
  }
}

/**
 * A command that returns the location of an agent's strand, and the user's read grant for it. @param caller
 * id of the principal
 */
export function locateCommand(
  agent: string,
  caller: string,
  { access }: Pick<StreamRequest, 'access'>,
): CommandOf<'strandLocate'> {
  const command = { kind: 'strandLocate', agent, caller } as const
  return access === undefined ? command : { ...command, access }
}

/** Copies a grant, so that its text does not keep a whole message frame in memory. */
export function copyGrantText(readable: GrantText): GrantText {
  const { key, text } = grantOfText(readable)
  return { key, text }
}

function bytesOf(readable: ReadGrants): number {
  let bytes = 0
  for (const { text } of readable.values()) bytes += text.length
  return bytes
}

const tooManyGrants = refuse(
  'overloaded',
  'The row policies of open streams take too much memory: close streams, or request fewer agents',
  { retryAfterSecs: 5 },
)
