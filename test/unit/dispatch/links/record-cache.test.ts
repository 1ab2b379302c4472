import { expect, it } from 'vitest'
import { type ShardSender, Shards } from '../../../../src/dispatch/links/shards.js'
import type { Receive } from '../../../../src/dispatch/links/shard-link.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'
import type { CommandOf } from '../../../../src/protocol/messages.js'

it.each([true, false])('keeps no record that a change may have overtaken (a node: %s)', async (isOfNode) => {
  const waiting: Receive[] = []
  const lease = new LeaseMemory(undefined, () => 0)
  lease.extend(1)
  const sender: ShardSender = {
    serving: true,
    awaySinceMs: 0,
    lease,
    send: (_command, receive) => void waiting.push(receive),
  }
  const shards = new Shards([sender], { cacheBytesMax: 1_048_576, isOfNode })
  const command: CommandOf<'recordGet'> = { kind: 'recordGet', agent: 'a', hash: '0'.repeat(64) }
  const found: (string | undefined)[] = []
  const get = () =>
    shards.send('a', command, (outcome) => found.push(outcome.kind === 'reply' ? outcome.body : undefined))
  get()
  waiting[0]?.({ kind: 'reply', status: 200, body: 'before' }, false, true)
  get()
  expect(waiting).toHaveLength(2)
  waiting[1]?.({ kind: 'reply', status: 200, body: 'after' }, false)
  get()
  expect([waiting.length, found]).toEqual([2, ['before', 'after', 'after']])
})
