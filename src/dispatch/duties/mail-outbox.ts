import type { MailDueOutcome, MailAttempted } from '../../protocol/auth-messages.js'
import type { Shards } from '../links/shards.js'

type OutboxMessage = MailDueOutcome['mails'][number]['message']

/** The outbox of all shards. Each shard stores the mails of its namespaces (docs/adr/0010-auth-state.md). */
export class ShardedOutbox {
  readonly #shards: Shards
  readonly #isOwn: (shard: number) => boolean
  /** The shard and key of each mail that was taken and has no result yet. */
  readonly #taken = new Map<string, { shard: number; key: string }>()

  /** @param isOwn whether this node owns a shard; other nodes send the mails of their shards */
  constructor(shards: Shards, isOwn: (shard: number) => boolean) {
    this.#shards = shards
    this.#isOwn = isOwn
  }

  /** Returns due mails, the oldest of each shard first, without those of shards that do not answer. */
  async take(limit: number): Promise<OutboxMessage[]> {
    const own = Array.from({ length: this.#shards.count }, (_none, shard) => shard).filter(this.#isOwn)
    const outcomes = await Promise.all(
      own.map(
        async (shard) => [shard, await this.#shards.requestShard(shard, { kind: 'mailDue', limit })] as const,
      ),
    )
    this.#taken.clear()
    const messages: OutboxMessage[] = []
    for (const [shard, outcome] of outcomes) {
      // A shard and its mails may have moved to another node in the meantime.
      if (!this.#isOwn(shard) || outcome.kind !== 'mailDue') continue
      for (const { key, message } of outcome.mails.slice(0, limit - messages.length)) {
        this.#taken.set(message.id, { shard, key })
        messages.push(message)
      }
    }
    return messages
  }

  /** Records that the mail was sent. @throws Error when this cannot be stored; the mail is then sent again */
  done(id: string): Promise<void> {
    return this.#record(id, { kind: 'done' })
  }

  /**
   * Records a failed attempt; without `retryAtMs`, the mail is dropped.
   * @throws Error when this cannot be stored
   */
  failed(id: string, retryAtMs: number | undefined, attempts: number): Promise<void> {
    const retry = retryAtMs === undefined ? {} : { retryAtMs }
    return this.#record(id, { kind: 'failed', attempts, ...retry })
  }

  async #record(id: string, result: MailAttempted['result']): Promise<void> {
    const location = this.#taken.get(id)
    if (location === undefined) return
    const { shard, key } = location
    const command = { kind: 'mailAttempted', key, result, options: {} } as const
    const outcome = await this.#shards.requestShard(shard, command)
    if (outcome.kind !== 'done') throw new Error(`Could not record the result of mail ${id}`)
    this.#taken.delete(id)
  }
}
