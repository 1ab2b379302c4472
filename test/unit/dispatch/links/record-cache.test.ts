import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Shards } from '../../../../src/dispatch/links/shards.js'
import { decodeCommands, encodeOutcomes, type FrontFrame } from '../../../../src/protocol/frame.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'
import type { CommandOf } from '../../../../src/protocol/messages.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

it.each([true, false])(
  'stores no record that a later change may have overtaken (in a cluster: %s)',
  async (isOfNode) => {
    const waiting: number[] = []
    const lease = new LeaseMemory(undefined, () => 0)
    lease.extend(1)
    const shards = new Shards(1, { cacheBytesMax: 1_048_576, isOfNode })
    const post = (frame: ArrayBuffer) => void waiting.push(...decodeCommands(frame).map(([id]) => id))
    const thread = { front: 0, term: 0, memory: new ShardMemory(), lease, post }
    expect(await shards.linkOf(0).join(thread, (reason) => expect.fail(reason))).toBe(true)
    const receive = (frame: Partial<FrontFrame>) => {
      const whole: FrontFrame = {
        outcomes: [],
        events: [],
        notices: [],
        appended: false,
        noticeNo: 0,
        ...frame,
      }
      shards.linkOf(0).receive(thread, encodeOutcomes(whole))
    }
    const command: CommandOf<'recordGet'> = { kind: 'recordGet', agent: 'a', hash: '0'.repeat(64) }
    const found: (string | undefined)[] = []
    const get = async () => {
      shards.send('a', command, (outcome) => found.push(outcome.kind === 'reply' ? outcome.body : undefined))
      await nextTick()
    }
    await get()
    receive({ noticeNo: 1 })
    receive({
      outcomes: [[waiting[0] ?? -1, { kind: 'reply', status: 200, body: 'before' }]],
      noticeNo: 0,
      isLate: true,
    })
    await get()
    expect(waiting).toHaveLength(2)
    receive({ outcomes: [[waiting[1] ?? -1, { kind: 'reply', status: 200, body: 'after' }]], noticeNo: 1 })
    await get()
    expect([waiting.length, found]).toEqual([2, ['before', 'after', 'after']])
  },
)
