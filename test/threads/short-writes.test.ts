import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { Command } from '../../src/protocol/messages.js'
import { appendNumber, codeOf, TestShard } from '../support/shard/shard.js'

/* Short writes of a turn end when its time is spent, and what takes long lets them pass. */

const READING_MS = 5
/** Short writes that fit into a turn: each looks at the clock once. */
const FIT = Math.ceil(limits.shardTurnMs / READING_MS) + 1

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  shard.run(appendNumber('a', 0))
  shard.frames.length = 0
  shard.everyLookTakes(READING_MS)
})
afterEach(() => shard.remove())

/** The outcomes so far, by the numbers of their commands, in the order in which they were told. */
const told = () => shard.frames.flatMap(({ outcomes }) => outcomes)

function untilIdle(busy: boolean): void {
  for (let going = busy; going;) going = shard.turn()
}

const numbered = (commands: Command[]) => commands.map((command, id): [number, Command] => [id, command])

it('ends a turn of short writes after its time, and continues in their order', () => {
  const count = 5 * FIT
  const writes = Array.from({ length: count }, (_none, n) => appendNumber('a', n))
  const busy = shard.turn(numbered(writes))
  expect(busy).toBe(true)
  expect(told().length).toBeGreaterThan(0)
  expect(told().length).toBeLessThanOrEqual(FIT)
  untilIdle(busy)
  expect(told().map(([id]) => id)).toEqual(writes.map((_write, id) => id))
})

it('ends it after its time also where all of them are refused', () => {
  const access = { claims: { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} } }
  const writes = Array.from({ length: 5 * FIT }, (_none, n): Command => ({ ...appendNumber('a', n), access }))
  const busy = shard.turn(numbered(writes))
  expect(told().length).toBeLessThanOrEqual(FIT)
  untilIdle(busy)
  expect(told().map(([, outcome]) => codeOf(outcome))).toEqual(writes.map(() => 'forbidden'))
})

const member = (n: number): Command => {
  return { kind: 'agentCreate', agent: `o::m${n}`, zone: 'free', isMember: true, options: {} }
}
const large = (n: number): Command => {
  const data = { n, text: 'x'.repeat(limits.shortWriteBytesMax) }
  return {
    kind: 'recordAppend',
    agent: 'a',
    emerge: false,
    body: Buffer.from(JSON.stringify({ data })),
    options: {},
  }
}

it.each([
  ['the agents of an organism', member],
  ['large records', large],
])('lets a short write pass %s', (_name, slow) => {
  const count = 5 * FIT
  const slows = Array.from({ length: count }, (_none, n) => slow(n))
  const late = count
  shard.turn(numbered(slows))
  const before = told().length
  expect(before).toBeLessThan(count)
  const busy = shard.turn([[late, appendNumber('b', 1)]])
  // In the next turn, whatever else waits.
  const place = told().findIndex(([id]) => id === late)
  expect(place).toBeGreaterThanOrEqual(before)
  expect(place).toBeLessThanOrEqual(before + FIT)
  untilIdle(busy)
  expect(told()).toHaveLength(count + 1)
  expect(told().every(([, outcome]) => outcome.kind === 'reply')).toBe(true)
  expect(
    told()
      .map(([id]) => id)
      .filter((id) => id !== late),
  ).toEqual(slows.map((_slow, id) => id))
})
