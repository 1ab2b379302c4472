import { setImmediate as nextTick } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { Quota } from '../../../../../src/base/quota.js'
import type { ShardConnection } from '../../../../../src/dispatch/links/shard-connection.js'
import { Shards } from '../../../../../src/dispatch/links/shards.js'
import type { BodyPart } from '../../../../../src/front/http/body-queue.js'
import { FrontSlices } from '../../../../../src/front/http/front-turn.js'
import { LineIngest } from '../../../../../src/front/http/ingest/stream.js'
import { lineSource } from '../../../../../src/front/http/ingest/source.js'
import { bodyBytes } from '../../../../../src/front/limits/bounds.js'
import { OpenTransfers } from '../../../../../src/front/limits/transfers.js'
import { decodeCommands } from '../../../../../src/protocol/frame.js'
import { ShardMemory } from '../../../../../src/protocol/shard-memory.js'

/** A thread of the shard, as the front sees it, which answers nothing. */
class Thread implements ShardConnection {
  readonly front = 0
  readonly memory = new ShardMemory()
  readonly lease = undefined
  readonly chunks: string[] = []
  readonly term: number

  constructor(term: number) {
    this.term = term
  }

  post(frame: ArrayBuffer): void {
    for (const [, command] of decodeCommands(frame))
      if ('chunk' in command) this.chunks.push(Buffer.from(command.chunk).toString())
  }
}

/** Resolves when all that needs no thread and no time was done. */
const idle = async () => {
  for (let ticks = 0; ticks < 50; ticks++) await nextTick()
}

let shards: Shards

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  shards = new Shards(1, { cacheBytesMax: 0, isOfNode: true })
  const nothing = () => {}
  shards.follow({ events: nothing, notice: nothing, restarted: nothing, catchUp: async () => {} })
})

afterEach(() => vi.useRealTimers())

const attach = (thread: Thread) => shards.linkOf(0).join(thread, (reason) => expect.fail(reason))

/** An upload of two lines that arrive one after another, so that each is a chunk. */
function upload() {
  const arrived: BodyPart[] = []
  let wake = () => {}
  const body = {
    interruption: undefined,
    async next(): Promise<BodyPart> {
      if (arrived.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return arrived.shift() ?? { ended: true }
    },
  }
  const principal = { id: 'root', kind: 'root' }
  const memory = new OpenTransfers(new Quota(bodyBytes)).begin(
    { principal, holder: 'root' } as never,
    () => {},
  )
  const request = { target: { agent: 'a' }, options: { gzip: false, onError: 'skip' }, source: lineSource }
  const limited = { bodyBytesMax: Infinity, lineBytesMax: 1_000, badLinesMax: 0, onRefused: () => {} }
  const stream = {
    ...limited,
    ...request,
    principal,
    holder: 'root',
    memory,
    shards,
    slices: new FrontSlices(),
  }
  const answer = new LineIngest(stream as never).run(body)
  const arrive = async (...parts: BodyPart[]) => {
    arrived.push(...parts)
    wake()
    await idle()
  }
  return {
    answer,
    begin: (line: string) => arrive({ bytes: Buffer.from(`${line}\n`) }),
    end: (line: string) => arrive({ bytes: Buffer.from(line) }, { ended: true }),
  }
}

describe('an upload to a shard that moves', () => {
  it('writes no line after one that the last owner may not have written', async () => {
    const [first, second] = [new Thread(1), new Thread(2)]
    await attach(first)
    const { begin, end, answer } = upload()
    await begin('{"n":0}')
    expect(first.chunks).toEqual(['{"n":0}\n'])
    shards.linkOf(0).leaving(first)
    await end('{"n":1}')
    shards.linkOf(0).end(first)
    await attach(second)
    await idle()
    expect(second.chunks).toEqual([])
    expect(await answer).toMatchObject({ code: 'outcome_unknown', extra: { accepted: 0 } })
  })

  it('writes no line after one that has found no owner in time', async () => {
    const { begin, end, answer } = upload()
    await begin('{"n":0}')
    vi.advanceTimersByTime(limits.shardMoveMs - limits.shardMoveCheckMs)
    await end('{"n":1}')
    vi.advanceTimersByTime(2 * limits.shardMoveCheckMs)
    const next = new Thread(1)
    await attach(next)
    await idle()
    expect(next.chunks).toEqual([])
    expect(await answer).toMatchObject({ code: 'unavailable', extra: { accepted: 0 } })
  })
})
