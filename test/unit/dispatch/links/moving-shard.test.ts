import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { ShardConnection } from '../../../../src/dispatch/links/shard-connection.js'
import { type Ask, ShardLink } from '../../../../src/dispatch/links/shard-link.js'
import { decodeCommands, encodeOutcomes } from '../../../../src/protocol/frame.js'
import type { Command, Outcome } from '../../../../src/protocol/messages.js'
import { ShardMemory } from '../../../../src/protocol/shard-memory.js'

const read: Command = { kind: 'agentHead', agent: 'a' }

/** A thread of the shard, as the front reaches it. */
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
    link.receive(this, encodeOutcomes({ outcomes, events: [], notices: [], appended: false, told: 0 }))
  }
}

let link: ShardLink
let outcomes: string[]
/** What the front does to know what it must of a thread. */
let learn: (ask: Ask) => Promise<void>

beforeEach(() => {
  outcomes = []
  learn = async () => {}
  const nothing = () => undefined
  const listener = {
    events: nothing,
    notice: nothing,
    restarted: nothing,
    ended: nothing,
    unreadable: nothing,
  }
  link = new ShardLink({ ...listener, learn: (asks) => learn(asks) }, true)
})

const join = (thread: Thread) => link.join(thread, (reason) => outcomes.push(reason))
const ask = () => {
  const refusal = link.send(read, (outcome) => outcomes.push('code' in outcome ? outcome.code : outcome.kind))
  if (refusal !== undefined) outcomes.push(`at once ${refusal.code}`)
}

describe('a front of a shard that moves', () => {
  it('has commands wait while there is no owner, and sends them to the next one in their order', async () => {
    const [first, second] = [new Thread(1), new Thread(2, 7)]
    expect(await join(first)).toBe(true)
    ask()
    await turn()
    link.leaving(first)
    ask()
    ask()
    await turn()
    expect(first.sent).toHaveLength(1)
    first.answer()
    link.end(first)
    ask()
    expect(outcomes).toEqual(['done'])
    expect(await join(second)).toBe(true)
    await turn()
    expect(second.sent).toHaveLength(3)
    expect(second.sent.map((id) => id % limits.frontNumbers)).toEqual([7, 7, 7])
    for (const id of second.sent) second.answer(id)
    expect(outcomes).toEqual(['done', 'done', 'done', 'done'])
  })

  it('sends what was given before the thread began to leave, and nothing more', async () => {
    const thread = new Thread(1)
    await join(thread)
    ask()
    link.leaving(thread)
    expect(thread.sent).toHaveLength(1)
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
      const thread = new Thread(1)
      await join(thread)
      await turn()
      expect(thread.sent).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not go back to an owner that was replaced', async () => {
    const [earlier, later] = [new Thread(1), new Thread(2)]
    expect(await join(later)).toBe(true)
    expect(await join(earlier)).toBe(false)
    expect(link.isAt(later)).toBe(true)
  })

  it('leaves an owner that does not know that it was replaced, and what it was sent is lost', async () => {
    const [earlier, later] = [new Thread(1), new Thread(2)]
    await join(earlier)
    ask()
    await turn()
    expect(await join(later)).toBe(true)
    expect(outcomes).toEqual(['unavailable'])
    expect(link.serving).toBe(true)
  })

  it('is not served by a thread that begins to leave before it is attached to it', async () => {
    const [first, second] = [new Thread(1), new Thread(2)]
    await join(first)
    const joining = join(second)
    link.leaving(second)
    expect(await joining).toBe(false)
    expect(link.serving).toBe(false)
  })

  it('is waited for by no thread that it never talks to, or has talked to for the last time', async () => {
    // Another front waits for what all have taken.
    const isWaitedFor = ({ memory }: Thread) => !memory.haveTaken(0)
    const [first, second, third] = [new Thread(1), new Thread(2), new Thread(3)]
    for (const one of [first, second, third]) one.memory.learns(one.front)
    await join(first)
    link.end(first)
    await turn()
    expect(isWaitedFor(first)).toBe(false)
    // One that is followed by another one before its turn has come, and one that is older.
    const joins = [join(second), join(third)]
    expect(await Promise.all(joins)).toEqual([false, true])
    expect([isWaitedFor(second), isWaitedFor(third)]).toEqual([false, false])
    const older = new Thread(2)
    older.memory.learns(older.front)
    expect(await join(older)).toBe(false)
    expect(isWaitedFor(older)).toBe(false)
    // One that ends while the front learns.
    const last = new Thread(4)
    last.memory.learns(last.front)
    learn = async (asks) => void (await asks(read))
    const learning = join(last)
    await turn()
    expect(isWaitedFor(last)).toBe(true)
    link.end(last)
    expect(await learning).toBe(false)
    expect(isWaitedFor(last)).toBe(false)
  })
})
