import type { Shards } from './links/shards.js'

/**
 * Cancels the open proposals of principals that have ended, and withdraws their approvals, each by a signed record
 * (docs/adr/0014-proposals.md). What a shard cannot do now is done by the next look of the `ProposalClock`.
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
      let outcome = await shards.askOne(shard, command)
      while (outcome.kind === 'authors' && outcome.next !== undefined)
        outcome = await shards.askOne(shard, { ...command, after: outcome.next })
    }),
  )
}
