import { sentBy } from '../protocol/messages.js'
import type { Shards } from './links/shards.js'

/**
 * Cancels the open proposals of principals that have ended and withdraws their approvals, each by a signed
 * record (docs/adr/0014-proposals.md). If a shard cannot answer, the next sweep of `ProposalClock` retries.
 */
export async function endAuthors(
  shards: Shards,
  principals: readonly string[],
  only?: number,
): Promise<void> {
  const all = only === undefined ? Array.from({ length: shards.count }, (_none, shard) => shard) : [only]
  await Promise.all(
    all.map(async (shard) => {
      const command = { kind: 'authorsEnd', principals, options: {} } as const
      let outcome = await shards.requestShard(shard, command)
      while (outcome.kind === 'authors' && outcome.next !== undefined)
        outcome = await shards.requestShard(shard, { ...command, after: outcome.next })
    }),
  )
}

/**
 * Resolves when nothing more of a principal's uploads is written, after its credential has ended: fronts no
 * longer send parts of them, but some may wait for their shard.
 */
export async function endUploads(shards: Shards, principal: string): Promise<void> {
  const command = sentBy(principal, { kind: 'uploadsEnd', options: {} } as const)
  await shards.requestAll(command)
}
