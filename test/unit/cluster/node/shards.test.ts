import { describe, expect, it } from 'vitest'
import { ClusterShards, type ClusterShardsParts } from '../../../../src/cluster/node/shards.js'

describe('the shards of a node', () => {
  it('are neither retried nor followed when their opening fails because the process ends', async () => {
    let fail: (error: Error) => void = () => {}
    const seen: unknown[] = []
    const parts: Partial<Record<keyof ClusterShardsParts, unknown>> = {
      directory: { shards: 1, path: '/nowhere' },
      log: { error: (_details: object, message: string) => seen.push(message) },
      threads: { open: () => new Promise((_resolve, reject) => (fail = reject)) },
      // A follower thread is started with the memory of the lease.
      lease: {
        get memory() {
          return seen.push('a follower thread starts')
        },
      },
      alive: () => [],
    }
    const shards = new ClusterShards(parts as unknown as ClusterShardsParts)
    shards.begin(true)
    await shards.unfollow()
    fail(new Error('The process is shutting down'))
    await shards.stop(0)
    expect(seen).toEqual([])
  })
})
