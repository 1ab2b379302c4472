import { afterEach, beforeEach, expect, it } from 'vitest'
import { ShardedOutbox } from '../../../../src/dispatch/duties/mail-outbox.js'
import { Shards } from '../../../../src/dispatch/links/shards.js'
import { decodeCommands, encodeOutcomes } from '../../../../src/protocol/frame.js'
import type { Outcome } from '../../../../src/protocol/messages.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'
import { AuthShard } from '../../../support/shard/auth-shard.js'

let shard: AuthShard
beforeEach(() => {
  shard = new AuthShard()
})
afterEach(() => shard.remove())

it('returns the mails of a shard while another does not answer', async () => {
  shard.register('ada@example.com')
  shard.sendLink({ purpose: 'magicLink', email: 'ada@example.com' })
  const shards = new Shards(2, { cacheBytesMax: 0, isOfNode: false })
  const nothing = () => undefined
  shards.follow({
    events: nothing,
    notice: nothing,
    restarted: nothing,
    catchUp: () => Promise.resolve(),
  })
  const link = shards.linkOf(1)
  const thread = {
    front: 0,
    term: 0,
    memory: new ShardMemory(),
    lease: undefined,
    post(frame: ArrayBuffer) {
      const outcomes = decodeCommands(frame).map(([id, command]): [number, Outcome] => [
        id,
        shard.ask(command),
      ])
      link.receive(
        thread,
        encodeOutcomes({ outcomes, events: [], notices: [], appended: false, noticeNo: 0 }),
      )
    },
  }
  await link.join(thread, (reason) => {
    throw new Error(reason)
  })
  const mails = await new ShardedOutbox(shards, () => true).take(10)
  expect(mails.map(({ mail }) => mail.to)).toEqual(['ada@example.com'])
})
