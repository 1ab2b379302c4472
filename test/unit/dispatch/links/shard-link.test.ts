import { setImmediate as nextTick } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ShardConnection } from '../../../../src/dispatch/links/shard-connection.js'
import { type RequestShard, ShardLink } from '../../../../src/dispatch/links/shard-link.js'
import { decodeCommands, encodeOutcomes, type FrontFrame } from '../../../../src/protocol/frame.js'
import type { Command } from '../../../../src/protocol/messages.js'
import type { Notice } from '../../../../src/protocol/notices.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

const read: Command = { kind: 'agentHead', agent: 'a' }
const keyRemoved: Notice = { kind: 'apiKeysChanged', changes: { created: [], removed: ['key'] } }

/** A front that records its events in order. */
class Front {
  readonly events: string[] = []
  /** The numbers of its commands. */
  readonly sent: number[] = []
  readonly link: ShardLink
  /** Its connection to the thread. */
  readonly thread: ShardConnection
  /** Resolves to the function that sends a command of the catch-up. */
  readonly asks: Promise<RequestShard>
  readonly #joined: Promise<boolean>
  #endCatchUp: () => void = () => {}

  constructor(front: number, memory: ShardMemory) {
    const catchingUp = new Promise<void>((resolve) => (this.#endCatchUp = resolve))
    let beginCatchUp: (asks: RequestShard) => void = () => {}
    this.asks = new Promise((resolve) => (beginCatchUp = resolve))
    this.link = new ShardLink(
      {
        events: (events) => this.events.push(...events.map(({ seq }) => `event ${seq}`)),
        notice: (notice) => this.events.push(notice.kind),
        async catchUp(asks) {
          beginCatchUp(asks)
          await catchingUp
        },
        restarted: () => undefined,
        ended: () => this.events.push('ended'),
      },
      false,
    )
    const post = (frame: ArrayBuffer) => this.sent.push(...decodeCommands(frame).map(([id]) => id))
    this.thread = { front, term: 0, memory, lease: undefined, post }
    this.#joined = this.link.join(this.thread, (reason) => this.events.push(reason))
  }

  /** Ends the catch-up, after which the thread serves the front. */
  async serve(): Promise<void> {
    this.#endCatchUp()
    expect(await this.#joined).toBe(true)
  }

  /** Sends a command. @returns its number */
  async ask(): Promise<number> {
    const refusal = this.link.send(read, (outcome) =>
      this.events.push('code' in outcome ? outcome.code : outcome.kind),
    )
    if (refusal !== undefined) throw new Error(refusal.detail)
    await nextTick()
    return this.sent.at(-1) ?? -1
  }

  take(frame: Partial<FrontFrame>): void {
    const whole: FrontFrame = {
      outcomes: [],
      events: [],
      notices: [],
      appended: false,
      noticeNo: 0,
      ...frame,
    }
    this.link.receive(this.thread, encodeOutcomes(whole))
  }
}

let memory: ShardMemory
let sender: Front
let other: Front

beforeEach(async () => {
  memory = new ShardMemory()
  sender = new Front(0, memory)
  other = new Front(1, memory)
  await sender.serve()
  await other.serve()
})

describe('an answer that later notices have overtaken', () => {
  it('is marked as late and does not lower the notice number', async () => {
    const marks: (boolean | undefined)[] = []
    for (let nth = 0; nth < 2; nth++)
      sender.link.send(read, (_outcome, _proven, isLate) => marks.push(isLate))
    await nextTick()
    const [first = -1, second = -1] = [sender.sent.at(-2), sender.sent.at(-1)]
    for (const front of [sender, other])
      for (const noticeNo of [1, 2]) front.take({ notices: [keyRemoved], noticeNo })
    sender.take({ outcomes: [[first, { kind: 'done' }]], noticeNo: 1, isLate: true })
    sender.take({ outcomes: [[second, { kind: 'done' }]], noticeNo: 2, isLate: true })
    await nextTick()
    expect(marks).toEqual([true, false])
    expect(memory.isAcknowledged(2)).toBe(true)
  })

  it('waits until every front has processed the notices before it', async () => {
    const id = await sender.ask()
    sender.take({ notices: [keyRemoved], noticeNo: 1 })
    sender.take({ outcomes: [[id, { kind: 'done' }]], noticeNo: 1, isLate: true })
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged'])
    other.take({ notices: [keyRemoved], noticeNo: 1 })
    await memory.untilAcknowledged(1)
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged', 'done'])
  })
})

describe('the answer to a commit with notices', () => {
  it('is lost without progress reports of other fronts, and does not block the next thread', async () => {
    const id = await sender.ask()
    sender.take({ notices: [keyRemoved], outcomes: [[id, { kind: 'done' }]], noticeNo: 1 })
    sender.link.end(sender.thread)
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged'])
    sender.link.abandon(sender.thread)
    expect(sender.events).toEqual(['apiKeysChanged', 'unavailable', 'ended'])
    const next = { ...sender.thread, memory: new ShardMemory(), isOver: false }
    expect(await sender.link.join(next, (reason) => sender.events.push(reason))).toBe(true)
    expect(sender.link.serving).toBe(true)
  })

  it('waits until every front has processed its notices, and so do later answers', async () => {
    const first = await sender.ask()
    const second = await sender.ask()
    sender.take({ notices: [keyRemoved], outcomes: [[first, { kind: 'done' }]], noticeNo: 1 })
    const event = { agent: 'a', seq: 7, hlc: '', data: '' }
    sender.take({ outcomes: [[second, { kind: 'done' }]], events: [event], noticeNo: 1 })
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged'])
    other.take({ notices: [keyRemoved], noticeNo: 1 })
    await memory.untilAcknowledged(1)
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged', 'done', 'done', 'event 7'])
    expect(other.events).toEqual(['apiKeysChanged'])
  })

  it('does not wait for a front that has left or whose thread has ended', async () => {
    const id = await sender.ask()
    sender.take({ notices: [keyRemoved], outcomes: [[id, { kind: 'done' }]], noticeNo: 1 })
    expect(sender.events).toEqual(['apiKeysChanged'])
    other.link.end(other.thread)
    await nextTick()
    expect(other.events).toEqual(['ended'])
    expect(sender.events).toEqual(['apiKeysChanged', 'done'])
  })

  it('is delivered before the end of the thread, and pending commands become unavailable', async () => {
    const id = await sender.ask()
    await sender.ask()
    sender.take({ notices: [keyRemoved], outcomes: [[id, { kind: 'done' }]], noticeNo: 1 })
    sender.link.end(sender.thread)
    expect(sender.link.serving).toBe(false)
    expect(sender.events).toEqual(['apiKeysChanged'])
    other.take({ notices: [keyRemoved], noticeNo: 1 })
    await memory.untilAcknowledged(1)
    await nextTick()
    expect(sender.events).toEqual(['apiKeysChanged', 'done', 'unavailable', 'ended'])
  })

  it('is delivered immediately without notices', async () => {
    const id = await sender.ask()
    sender.take({ outcomes: [[id, { kind: 'done' }]], noticeNo: 0 })
    expect(sender.events).toEqual(['done'])
  })
})

describe('a thread that replaces a dead one', () => {
  it('answers no client before every front has caught up', async () => {
    const next = new ShardMemory()
    for (const front of [0, 1]) next.startCatchUp(front)
    const [serving, catchingUp] = [new Front(0, next), new Front(1, next)]
    expect(serving.link.send(read, () => undefined)).toMatchObject({ code: 'unavailable' })
    await serving.serve()
    const id = await serving.ask()
    serving.take({ outcomes: [[id, { kind: 'done' }]], noticeNo: 0 })
    expect(serving.events).toEqual([])
    const asks = await catchingUp.asks
    const learnt = asks(read)
    await nextTick()
    catchingUp.take({ outcomes: [[catchingUp.sent[0] ?? -1, { kind: 'done' }]], noticeNo: 0 })
    expect(await learnt).toEqual({ kind: 'done' })
    expect(serving.events).toEqual([])
    await catchingUp.serve()
    await next.untilAcknowledged(0)
    await nextTick()
    expect(serving.events).toEqual(['done'])
  })
})

describe('the queue of a shard', () => {
  it('counts the commands of all fronts', async () => {
    await sender.ask()
    await other.ask()
    expect([sender.link.depth, other.link.depth]).toEqual([2, 2])
    sender.take({ outcomes: [[sender.sent[0] ?? -1, { kind: 'done' }]], noticeNo: 0 })
    expect(other.link.depth).toBe(1)
  })
})

describe('the notice number', () => {
  it('wraps around', () => {
    memory.acknowledge(0, 2_147_483_647)
    memory.acknowledge(1, 2_147_483_647)
    expect(memory.isAcknowledged(2_147_483_647)).toBe(true)
    expect(memory.isAcknowledged(-2_147_483_648)).toBe(false)
    memory.acknowledge(0, -2_147_483_648)
    memory.acknowledge(1, -2_147_483_648)
    expect(memory.isAcknowledged(-2_147_483_648)).toBe(true)
    expect(memory.isAcknowledged(2_147_483_647)).toBe(true)
  })
})
