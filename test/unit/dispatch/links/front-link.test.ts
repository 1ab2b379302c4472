import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { type FrontEnd, FrontLink, join } from '../../../../src/dispatch/links/front-link.js'
import { decodeCommands, encodeOutcomes } from '../../../../src/protocol/frame.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

const read: Command = { kind: 'agentHead', agent: 'a' }

/** A thread of the shard, as the front reaches it. */
class End implements FrontEnd {
  readonly memory = new ShardMemory()
  readonly lease = undefined
  isLeaving = false
  readonly sent: number[] = []
  #take: (frame: ArrayBuffer) => void = () => {}
  #closed: () => void = () => {}

  readonly term: number
  readonly front: number

  constructor(term: number, front = 0) {
    this.term = term
    this.front = front
  }

  post(frame: ArrayBuffer): void {
    this.sent.push(...decodeCommands(frame).map(([id]) => id))
  }

  listen(take: (frame: ArrayBuffer) => void, closed: () => void): void {
    this.#take = take
    this.#closed = closed
  }

  answer(id = this.sent.at(-1) ?? -1): void {
    const outcomes: [number, Outcome][] = [[id, { kind: 'done' }]]
    this.#take(encodeOutcomes({ outcomes, events: [], notices: [], appended: false, told: 0 }))
  }

  close(): void {
    this.#closed()
  }
}

let link: FrontLink
let outcomes: string[]

beforeEach(() => {
  outcomes = []
  const nothing = () => undefined
  link = new FrontLink({ events: nothing, notice: nothing, unreadable: nothing, ended: nothing }, true)
})

const learnt = { learn: async () => {}, failed: (reason: string) => void outcomes.push(reason) }
const ask = () => {
  const refusal = link.send(read, (outcome) => outcomes.push('code' in outcome ? outcome.code : outcome.kind))
  if (refusal !== undefined) outcomes.push(`at once ${refusal.code}`)
}

describe('a front of a shard that moves', () => {
  it('has commands wait while there is no owner, and sends them to the next one in their order', async () => {
    const [first, second] = [new End(1), new End(2, 7)]
    expect(await join(link, first, learnt)).toBe(true)
    ask()
    await turn()
    link.leaving(first)
    ask()
    ask()
    await turn()
    expect(first.sent).toHaveLength(1)
    first.answer()
    first.close()
    ask()
    expect(outcomes).toEqual(['done'])
    expect(await join(link, second, learnt)).toBe(true)
    await turn()
    expect(second.sent).toHaveLength(3)
    expect(second.sent.map((id) => id % limits.frontNumbers)).toEqual([7, 7, 7])
    for (const id of second.sent) second.answer(id)
    expect(outcomes).toEqual(['done', 'done', 'done', 'done'])
  })

  it('sends what was given before the thread began to leave, and nothing more', async () => {
    const end = new End(1)
    await join(link, end, learnt)
    ask()
    link.leaving(end)
    expect(end.sent).toHaveLength(1)
    expect(link.serving).toBe(false)
  })

  it('refuses what has waited for two seconds, and nothing has become of it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    try {
      ask()
      vi.advanceTimersByTime(limits.shardMoveMs - limits.shardMoveLookMs)
      expect(outcomes).toEqual([])
      vi.advanceTimersByTime(2 * limits.shardMoveLookMs)
      expect(outcomes).toEqual(['unavailable'])
      const end = new End(1)
      await join(link, end, learnt)
      await turn()
      expect(end.sent).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not go back to an owner that was replaced', async () => {
    const [earlier, later] = [new End(1), new End(2)]
    expect(await join(link, later, learnt)).toBe(true)
    expect(await join(link, earlier, learnt)).toBe(false)
    expect(link.isAt(later)).toBe(true)
  })

  it('leaves an owner that does not know that it was replaced, and what it was sent is lost', async () => {
    const [earlier, later] = [new End(1), new End(2)]
    await join(link, earlier, learnt)
    ask()
    await turn()
    expect(await join(link, later, learnt)).toBe(true)
    expect(outcomes).toEqual(['unavailable'])
    expect(link.serving).toBe(true)
  })

  it('is not served by a thread that begins to leave before it is attached to it', async () => {
    const [first, second] = [new End(1), new End(2)]
    await join(link, first, learnt)
    const joining = join(link, second, learnt)
    link.leaving(second)
    expect(await joining).toBe(false)
    expect(link.serving).toBe(false)
  })

  it('is waited for by no thread that it never talks to, or has talked to for the last time', async () => {
    // Another front waits for what all have taken.
    const isWaitedFor = ({ memory }: End) => !memory.haveTaken(0)
    const [first, second, third] = [new End(1), new End(2), new End(3)]
    for (const end of [first, second, third]) end.memory.learns(end.front)
    await join(link, first, learnt)
    first.close()
    await turn()
    expect(isWaitedFor(first)).toBe(false)
    // One that is followed by another one before its turn has come, and one that is older.
    const joins = [join(link, second, learnt), join(link, third, learnt)]
    expect(await Promise.all(joins)).toEqual([false, true])
    expect([isWaitedFor(second), isWaitedFor(third)]).toEqual([false, false])
    const older = new End(2)
    older.memory.learns(older.front)
    expect(await join(link, older, learnt)).toBe(false)
    expect(isWaitedFor(older)).toBe(false)
    // One that ends while the front learns.
    const last = new End(4)
    last.memory.learns(last.front)
    const learning = join(link, last, { ...learnt, learn: async (learn) => void (await learn(read)) })
    await turn()
    expect(isWaitedFor(last)).toBe(true)
    last.close()
    expect(await learning).toBe(false)
    expect(isWaitedFor(last)).toBe(false)
  })
})
