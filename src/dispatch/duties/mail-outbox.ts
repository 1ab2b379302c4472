import type { MailDueOutcome, MailSettle } from '../../protocol/auth-messages.js'
import type { Shards } from '../links/shards.js'

type OutboxMessage = MailDueOutcome['mails'][number]['message']

/** The mails of all shards, each of which keeps those of its own namespaces (docs/adr/0010-auth-state.md). */
export class ShardedOutbox {
  readonly #shards: Shards
  readonly #isOwn: (shard: number) => boolean
  /** Where the mails are that were taken and not settled yet. */
  readonly #taken = new Map<string, { shard: number; key: string }>()

  /** @param isOwn whether a shard is of this node: others send the mails of theirs */
  constructor(shards: Shards, isOwn: (shard: number) => boolean) {
    this.#shards = shards
    this.#isOwn = isOwn
  }

  /** Mails whose next try is due, the oldest of each shard first. @throws Error when a shard does not answer */
  async take(limit: number): Promise<OutboxMessage[]> {
    const own = Array.from({ length: this.#shards.count }, (_none, shard) => shard).filter(this.#isOwn)
    const outcomes = await Promise.all(
      own.map(
        async (shard) => [shard, await this.#shards.askOne(shard, { kind: 'mailDue', limit })] as const,
      ),
    )
    this.#taken.clear()
    const messages: OutboxMessage[] = []
    for (const [shard, outcome] of outcomes) {
      // It has moved meanwhile, and its mails with it.
      if (!this.#isOwn(shard)) continue
      if (outcome.kind !== 'mailDue') throw new Error(`The outbox of shard ${shard} cannot be read now`)
      for (const { key, message } of outcome.mails.slice(0, limit - messages.length)) {
        this.#taken.set(message.id, { shard, key })
        messages.push(message)
      }
    }
    return messages
  }

  /** The mail is sent. @throws Error when that could not be stored: it is sent again */
  done(id: string): Promise<void> {
    return this.#settle(id, { kind: 'done' })
  }

  /** A try failed; without a time for the next one the mail is given up. @throws Error when that could not be stored */
  failed(id: string, retryAtMs: number | undefined, attempts: number): Promise<void> {
    const retry = retryAtMs === undefined ? {} : { retryAtMs }
    return this.#settle(id, { kind: 'failed', attempts, ...retry })
  }

  async #settle(id: string, result: MailSettle['result']): Promise<void> {
    const place = this.#taken.get(id)
    if (place === undefined) return
    const { shard, key } = place
    const outcome = await this.#shards.askOne(shard, { kind: 'mailSettle', key, result, options: {} })
    if (outcome.kind !== 'done') throw new Error(`What became of mail ${id} could not be kept`)
    this.#taken.delete(id)
  }
}
