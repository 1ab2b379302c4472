import { setImmediate as nextTick } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { ShardConnection } from '../../../../src/dispatch/links/shard-connection.js'
import { type RequestShard, ShardLink } from '../../../../src/dispatch/links/shard-link.js'
import { decodeCommands, encodeOutcomes } from '../../../../src/protocol/frame.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

const read: Command = { kind: 'agentHead', agent: 'a' }

/** A thread of the shard, as the front sees it. */
class Thread implements ShardConnection {
  readonly memory = new ShardMemory()
  readonly lease = undefined
  readonly sent: number[] = []
  readonly term: number
  readonly front: number

  constructor(term: number, front = 0) {
    this.term = term
    this.front = front
  }

  post(frame: ArrayBuffer): void {
    this.sent.push(...decodeCommands(frame).map(([id]) => id))
  }

  answer(id = this.sent.at(-1) ?? -1): void {
    const outcomes: [number, Outcome][] = [[id, { kind: 'done' }]]
    link.receive(this, encodeOutcomes({ outcomes, events: [], notices: [], appended: false, noticeNo: 0 }))
  }
}

let link: ShardLink
let outcomes: string[]
/** How the front catches up with a thread. */
let learn: (ask: RequestShard) => Promise<void>

beforeEach(() => {
  outcomes = []
  learn = async () => {}
  const nothing = () => undefined
  const listener = {
    events: nothing,
    notice: nothing,
    restarted: nothing,
    ended: nothing,
  }
  link = new ShardLink({ ...listener, catchUp: (asks) => learn(asks) }, true)
})

const join = (thread: Thread) => link.join(thread, (reason) => outcomes.push(reason))
const ask = () => {
  const refusal = link.send(read, (outcome) => outcomes.push('code' in outcome ? outcome.code : outcome.kind))
  if (refusal !== undefined) outcomes.push(`immediately ${refusal.code}`)
}

describe('a front of a shard that moves', () => {
  it('queues the end of uploads although its queue is full', async () => {
    for (let nth = 0; nth < limits.shardQueueMax; nth++) link.send(read, () => {})
    ask()
    expect(outcomes).toEqual(['immediately overloaded'])
    expect(link.send({ kind: 'uploadsEnd', caller: 'key', options: {} }, () => {})).toBeUndefined()
    const thread = new Thread(1)
    await join(thread)
    await nextTick()
    expect(thread.sent).toHaveLength(limits.shardQueueMax + 1)
  })

  it('queues commands while the shard has no owner and sends them to the next one in order', async () => {
    const [first, second] = [new Thread(1), new Thread(2, 7)]
    expect(await join(first)).toBe(true)
    ask()
    await nextTick()
    link.leaving(first)
    ask()
    ask()
    await nextTick()
    expect(first.sent).toHaveLength(1)
    first.answer()
    link.end(first)
    ask()
    expect(outcomes).toEqual(['done'])
    expect(await join(second)).toBe(true)
    await nextTick()
    expect(second.sent).toHaveLength(3)
    expect(second.sent.map((id) => id % limits.frontNumbers)).toEqual([7, 7, 7])
    for (const id of second.sent) second.answer(id)
    expect(outcomes).toEqual(['done', 'done', 'done', 'done'])
  })

  it('sends commands from before the thread began to leave, and no later ones', async () => {
    const thread = new Thread(1)
    await join(thread)
    ask()
    link.leaving(thread)
    expect(thread.sent).toHaveLength(1)
    expect(link.serving).toBe(false)
  })

  it('refuses a command after two seconds without having sent it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    try {
      ask()
      vi.advanceTimersByTime(limits.shardMoveMs - limits.shardMoveCheckMs)
      expect(outcomes).toEqual([])
      vi.advanceTimersByTime(2 * limits.shardMoveCheckMs)
      expect(outcomes).toEqual(['unavailable'])
      const thread = new Thread(1)
      await join(thread)
      await nextTick()
      expect(thread.sent).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not return to a replaced owner', async () => {
    const [earlier, later] = [new Thread(1), new Thread(2)]
    expect(await join(later)).toBe(true)
    expect(await join(earlier)).toBe(false)
    expect(link.isAt(later)).toBe(true)
  })

  it('leaves an owner that does not know of its replacement, and fails its pending commands', async () => {
    const [earlier, later] = [new Thread(1), new Thread(2)]
    await join(earlier)
    ask()
    await nextTick()
    expect(await join(later)).toBe(true)
    expect(outcomes).toEqual(['unavailable'])
    expect(link.serving).toBe(true)
  })

  it('is not served by a thread that begins to leave before it is attached', async () => {
    const [first, second] = [new Thread(1), new Thread(2)]
    await join(first)
    const joining = join(second)
    link.leaving(second)
    expect(await joining).toBe(false)
    expect(link.serving).toBe(false)
  })

  it('is not waited for by a thread to which it is not attached', async () => {
    // Another front waits until all fronts have processed the notices.
    const isWaitedFor = ({ memory }: Thread) => !memory.isAcknowledged(0)
    const [first, second, third] = [new Thread(1), new Thread(2), new Thread(3)]
    for (const one of [first, second, third]) one.memory.startCatchUp(one.front)
    await join(first)
    link.end(first)
    await nextTick()
    expect(isWaitedFor(first)).toBe(false)
    // A thread that is replaced while it waits to be attached, and an older one.
    const joins = [join(second), join(third)]
    expect(await Promise.all(joins)).toEqual([false, true])
    expect([isWaitedFor(second), isWaitedFor(third)]).toEqual([false, false])
    const older = new Thread(2)
    older.memory.startCatchUp(older.front)
    expect(await join(older)).toBe(false)
    expect(isWaitedFor(older)).toBe(false)
    // A thread that ends while the front catches up.
    const last = new Thread(4)
    last.memory.startCatchUp(last.front)
    learn = async (asks) => void (await asks(read))
    const joining = join(last)
    await nextTick()
    expect(isWaitedFor(last)).toBe(true)
    link.end(last)
    expect(await joining).toBe(false)
    expect(isWaitedFor(last)).toBe(false)
  })
})
