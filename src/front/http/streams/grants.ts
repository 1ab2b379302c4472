import { grantOfText, type GrantText } from '../../../auth/grant.js'
import { assert } from '../../../base/assert.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { CommandOf } from '../../../protocol/messages.js'
import { unexpected } from '../../routes/answers.js'
import type { Principal, StreamRequest } from '../../routes/route.js'
import type { BoundedBytes } from '../../limits/bounded-bytes.js'

/** What a user may read, by agent. */
export type Readable = ReadonlyMap<string, GrantText>

/** How often the policies of a stream's agents are read before the client is told to try again in a second. */
const READABLE_TRIES_MAX = 4

/** What users' streams may read: asked of the shards, and held within bounds. */
export class StreamGrants {
  readonly #shards: Shards
  readonly #held: BoundedBytes
  /** Counts changes, and possible changes, of what users may read. */
  #changes = 0

  /** @param held counts the bytes of grants that streams hold */
  constructor(shards: Shards, held: BoundedBytes) {
    this.#shards = shards
    this.#held = held
  }

  policiesChanged(): void {
    this.#changes += 1
  }

  /** What a user may read of the agents in the request; 403 if one is hidden. Asked again if policies change. @param caller id of the principal */
  async readableBy(request: StreamRequest, caller: string): Promise<Readable | Refusal> {
    for (let tries = 0; tries < READABLE_TRIES_MAX; tries++) {
      const changes = this.#changes
      const readable = await this.#locateAll(request, caller)
      if (changes === this.#changes || 'code' in readable) return readable
    }
    return refuse('overloaded', 'The row policies are being changed, try again', { retryAfterSecs: 1 })
  }

  async #locateAll(request: StreamRequest, caller: string): Promise<Readable | Refusal> {
    const readable = new Map<string, GrantText>()
    const agents = request.agents ?? []
    for (let from = 0; from < agents.length; from += limits.streamGrantsAtOnce) {
      const some = agents.slice(from, from + limits.streamGrantsAtOnce)
      const outcomes = await Promise.all(
        some.map((agent) => this.#shards.ask(agent, locateCommand(agent, caller, request))),
      )
      for (const [place, agent] of some.entries()) {
        const outcome = outcomes[place]
        assert(outcome !== undefined, 'each agent has its outcome')
        if (outcome.kind !== 'located') return unexpected(outcome)
        if (outcome.readable !== undefined) readable.set(agent, ownText(outcome.readable))
      }
      if (bytesOf(readable) > limits.streamGrantBytesPerPrincipalMax) return tooManyGrants
    }
    return readable
  }

  /** Takes room for what a stream holds, or refuses it: 503. */
  take({ id }: Principal, readable: Readable | undefined): Refusal | undefined {
    return readable === undefined || this.#held.take(id, bytesOf(readable)) ? undefined : tooManyGrants
  }

  give({ id }: Principal, readable: Readable | undefined): void {
    if (readable !== undefined) this.#held.give(id, bytesOf(readable))
  }
}

/** Asks for the place of an agent's strand, and what of it a user may read. @param caller id of the principal */
export function locateCommand(
  agent: string,
  caller: string,
  { access }: Pick<StreamRequest, 'access'>,
): CommandOf<'strandLocate'> {
  const command = { kind: 'strandLocate', agent, caller } as const
  return access === undefined ? command : { ...command, access }
}

/** A grant whose text keeps no frame in memory. */
export function ownText(readable: GrantText): GrantText {
  const { key, text } = grantOfText(readable)
  return { key, text }
}

function bytesOf(readable: Readable): number {
  let bytes = 0
  for (const { text } of readable.values()) bytes += text.length
  return bytes
}

/** 503 where streams hold as much of policies and claims as they may. */
const tooManyGrants = refuse(
  'overloaded',
  'The row policies of open streams take too much memory, close streams or name fewer agents',
  { retryAfterSecs: 5 },
)
