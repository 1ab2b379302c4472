import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import type { ShardConnection } from '../../../../src/dispatch/links/shard-connection.js'
import { type Ask, ShardLink } from '../../../../src/dispatch/links/shard-link.js'
import { decodeCommands, encodeOutcomes, type FrontFrame } from '../../../../src/protocol/frame.js'
import type { Command } from '../../../../src/protocol/messages.js'
import type { Notice } from '../../../../src/protocol/notices.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

const read: Command = { kind: 'agentHead', agent: 'a' }
const gone: Notice = { kind: 'apiKeysChanged', changes: { made: [], gone: ['key'] } }

/** A front with what happened at it, in order. */
class Front {
  readonly happened: string[] = []
  /** Numbers of the commands that it has sent. */
  readonly sent: number[] = []
  readonly link: ShardLink
  /** To the thread that it talks to. */
  readonly thread: ShardConnection
  /** What it asks the thread before that serves it. */
  readonly asks: Promise<Ask>
  readonly #joined: Promise<boolean>
  #learnt: () => void = () => {}

  constructor(front: number, memory: ShardMemory) {
    const learning = new Promise<void>((resolve) => (this.#learnt = resolve))
    let begins: (asks: Ask) => void = () => {}
    this.asks = new Promise((resolve) => (begins = resolve))
    this.link = new ShardLink(
      {
        events: (events) => this.happened.push(...events.map(({ seq }) => `event ${seq}`)),
        notice: (notice) => this.happened.push(notice.kind),
        async learn(asks) {
          begins(asks)
          await learning
        },
        restarted: () => undefined,
        ended: () => this.happened.push('ended'),
        unreadable: (error) => this.happened.push(String(error)),
      },
      false,
    )
    const post = (frame: ArrayBuffer) => this.sent.push(...decodeCommands(frame).map(([id]) => id))
    this.thread = { front, term: 0, memory, lease: undefined, post }
    this.#joined = this.link.join(this.thread, (reason) => this.happened.push(reason))
  }

  /** It has learnt what it must know: the thread serves it. */
  async serve(): Promise<void> {
    this.#learnt()
    expect(await this.#joined).toBe(true)
  }

  /** Sends a command; gives its number. */
  async ask(): Promise<number> {
    const refusal = this.link.send(read, (outcome) =>
      this.happened.push('code' in outcome ? outcome.code : outcome.kind),
    )
    if (refusal !== undefined) throw new Error(refusal.detail)
    await turn()
    return this.sent.at(-1) ?? -1
  }

  take(frame: Partial<FrontFrame> & { told: number }): void {
    const whole = { outcomes: [], events: [], notices: [], appended: false, ...frame }
    this.link.receive(this.thread, encodeOutcomes(whole))
  }
}

let memory: ShardMemory
let asking: Front
let other: Front

beforeEach(async () => {
  memory = new ShardMemory()
  asking = new Front(0, memory)
  other = new Front(1, memory)
  await asking.serve()
  await other.serve()
})

describe('an answer that was overtaken by what its shard told next', () => {
  it('takes nothing back, and is marked', async () => {
    const marks: (boolean | undefined)[] = []
    for (let nth = 0; nth < 2; nth++)
      asking.link.send(read, (_outcome, _proven, isLate) => marks.push(isLate))
    await turn()
    const [first = -1, second = -1] = [asking.sent.at(-2), asking.sent.at(-1)]
    for (const front of [asking, other]) for (const told of [1, 2]) front.take({ notices: [gone], told })
    asking.take({ outcomes: [[first, { kind: 'done' }]], told: 1, isLate: true })
    asking.take({ outcomes: [[second, { kind: 'done' }]], told: 2, isLate: true })
    await turn()
    expect(marks).toEqual([true, false])
    expect(memory.haveTaken(2)).toBe(true)
  })

  it('waits all the same until every front has what was told before it', async () => {
    const id = await asking.ask()
    asking.take({ notices: [gone], told: 1 })
    asking.take({ outcomes: [[id, { kind: 'done' }]], told: 1, isLate: true })
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged'])
    other.take({ notices: [gone], told: 1 })
    await memory.untilTaken(1)
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged', 'done'])
  })
})

describe('the answer to a commit that fronts must know of', () => {
  it('is lost where nobody says any more how far they are, and holds up no later thread', async () => {
    const asked = await asking.ask()
    asking.take({ notices: [gone], outcomes: [[asked, { kind: 'done' }]], told: 1 })
    asking.link.end(asking.thread)
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged'])
    asking.link.abandon(asking.thread)
    expect(asking.happened).toEqual(['apiKeysChanged', 'unavailable', 'ended'])
    const next = { ...asking.thread, memory: new ShardMemory(), isOver: false }
    expect(await asking.link.join(next, (reason) => asking.happened.push(reason))).toBe(true)
    expect(asking.link.serving).toBe(true)
  })

  it('waits until every front has processed its notices, and so does all that follows', async () => {
    const first = await asking.ask()
    const second = await asking.ask()
    asking.take({ notices: [gone], outcomes: [[first, { kind: 'done' }]], told: 1 })
    const event = { agent: 'a', seq: 7, hlc: '', data: '' }
    asking.take({ outcomes: [[second, { kind: 'done' }]], events: [event], told: 1 })
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged'])
    other.take({ notices: [gone], told: 1 })
    await memory.untilTaken(1)
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged', 'done', 'done', 'event 7'])
    expect(other.happened).toEqual(['apiKeysChanged'])
  })

  it('waits for no front that has left, nor for one whose shard has ended', async () => {
    const id = await asking.ask()
    asking.take({ notices: [gone], outcomes: [[id, { kind: 'done' }]], told: 1 })
    expect(asking.happened).toEqual(['apiKeysChanged'])
    other.link.end(other.thread)
    await turn()
    expect(other.happened).toEqual(['ended'])
    expect(asking.happened).toEqual(['apiKeysChanged', 'done'])
  })

  it('is passed on before the end of the thread is told, and what was not answered is unavailable', async () => {
    const id = await asking.ask()
    await asking.ask()
    asking.take({ notices: [gone], outcomes: [[id, { kind: 'done' }]], told: 1 })
    asking.link.end(asking.thread)
    expect(asking.link.serving).toBe(false)
    expect(asking.happened).toEqual(['apiKeysChanged'])
    other.take({ notices: [gone], told: 1 })
    await memory.untilTaken(1)
    await turn()
    expect(asking.happened).toEqual(['apiKeysChanged', 'done', 'unavailable', 'ended'])
  })

  it('comes at once where no front has anything to process', async () => {
    const id = await asking.ask()
    asking.take({ outcomes: [[id, { kind: 'done' }]], told: 0 })
    expect(asking.happened).toEqual(['done'])
  })
})

describe('a thread in place of one that died', () => {
  it('answers nobody before every front has learnt what its predecessor may not have told', async () => {
    const next = new ShardMemory()
    for (const front of [0, 1]) next.learns(front)
    const [serving, learning] = [new Front(0, next), new Front(1, next)]
    expect(serving.link.send(read, () => undefined)).toMatchObject({ code: 'unavailable' })
    await serving.serve()
    const id = await serving.ask()
    serving.take({ outcomes: [[id, { kind: 'done' }]], told: 0 })
    expect(serving.happened).toEqual([])
    const asks = await learning.asks
    const learnt = asks(read)
    await turn()
    learning.take({ outcomes: [[learning.sent[0] ?? -1, { kind: 'done' }]], told: 0 })
    expect(await learnt).toEqual({ kind: 'done' })
    expect(serving.happened).toEqual([])
    await learning.serve()
    await next.untilTaken(0)
    await turn()
    expect(serving.happened).toEqual(['done'])
  })
})

describe('the queue of a shard', () => {
  it('is counted once for all fronts', async () => {
    await asking.ask()
    await other.ask()
    expect([asking.link.depth, other.link.depth]).toEqual([2, 2])
    asking.take({ outcomes: [[asking.sent[0] ?? -1, { kind: 'done' }]], told: 0 })
    expect(other.link.depth).toBe(1)
  })
})

describe('the count of what was told', () => {
  it('wraps around', () => {
    memory.hasTaken(0, 2_147_483_647)
    memory.hasTaken(1, 2_147_483_647)
    expect(memory.haveTaken(2_147_483_647)).toBe(true)
    expect(memory.haveTaken(-2_147_483_648)).toBe(false)
    memory.hasTaken(0, -2_147_483_648)
    memory.hasTaken(1, -2_147_483_648)
    expect(memory.haveTaken(-2_147_483_648)).toBe(true)
    expect(memory.haveTaken(2_147_483_647)).toBe(true)
  })
})
