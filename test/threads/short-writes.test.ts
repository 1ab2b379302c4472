import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { Command } from '../../src/protocol/messages.js'
import { appendNumber, codeOf, TestShard } from '../support/shard/shard.js'

/* A turn of short writes ends when its time is used up, and short writes overtake long ones. */

const READING_MS = 5
/** The number of short writes that fit into a turn; each reads the clock once. */
const FIT = Math.ceil(limits.shardTurnMs / READING_MS) + 1

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  shard.run(appendNumber('a', 0))
  shard.frames.length = 0
  shard.everyClockReadingTakes(READING_MS)
})
afterEach(() => shard.remove())

/** The outcomes so far with the numbers of their commands, in the order of the frames. */
const answered = () => shard.frames.flatMap(({ outcomes }) => outcomes)

function untilIdle(busy: boolean): void {
  for (let isBusy = busy; isBusy;) isBusy = shard.turn()
}

const numbered = (commands: Command[]) => commands.map((command, id): [number, Command] => [id, command])

it('ends a turn of short writes when its time is used up, and continues in order', () => {
  const count = 5 * FIT
  const writes = Array.from({ length: count }, (_none, n) => appendNumber('a', n))
  const busy = shard.turn(numbered(writes))
  expect(busy).toBe(true)
  expect(answered().length).toBeGreaterThan(0)
  expect(answered().length).toBeLessThanOrEqual(FIT)
  untilIdle(busy)
  expect(answered().map(([id]) => id)).toEqual(writes.map((_write, id) => id))
})

it('ends a turn when its time is used up even if all writes are refused', () => {
  const access = { claims: { sub: 'usr_1', email: 'a@b.c', app_metadata: {}, user_metadata: {} } }
  const writes = Array.from({ length: 5 * FIT }, (_none, n): Command => ({ ...appendNumber('a', n), access }))
  const busy = shard.turn(numbered(writes))
  expect(answered().length).toBeLessThanOrEqual(FIT)
  untilIdle(busy)
  expect(answered().map(([, outcome]) => codeOf(outcome))).toEqual(writes.map(() => 'forbidden'))
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
])('lets a short write overtake %s', (_name, slow) => {
  const count = 5 * FIT
  const slows = Array.from({ length: count }, (_none, n) => slow(n))
  const late = count
  shard.turn(numbered(slows))
  const before = answered().length
  expect(before).toBeLessThan(count)
  const busy = shard.turn([[late, appendNumber('b', 1)]])
  // The short write is decided in the next turn, whatever else is waiting.
  const position = answered().findIndex(([id]) => id === late)
  expect(position).toBeGreaterThanOrEqual(before)
  expect(position).toBeLessThanOrEqual(before + FIT)
  untilIdle(busy)
  expect(answered()).toHaveLength(count + 1)
  expect(answered().every(([, outcome]) => outcome.kind === 'reply')).toBe(true)
  expect(
    answered()
      .map(([id]) => id)
      .filter((id) => id !== late),
  ).toEqual(slows.map((_slow, id) => id))
})

// It was answered while short writes before it still waited, and one of them could be of the ended credential.
it.each([
  ['there is no time for all of them in a turn', undefined],
  ['a long write comes first', large(1)],
])('ends uploads after the short writes before it, although %s', (_name, first) => {
  const before = Array.from({ length: 5 * FIT }, (_none, n) => appendNumber('a', n))
  const end: Command = { kind: 'uploadsEnd', caller: 'key', options: {} }
  const after = Array.from({ length: 5 * FIT }, (_none, n) => appendNumber('a', n))
  const commands = first === undefined ? before : [first, ...before]
  shard.turn(numbered([...commands, end]))
  const late = commands.length + 1
  untilIdle(shard.turn(after.map((command, n) => [late + n, command])))
  const order = answered().map(([id]) => id)
  const ended = order.indexOf(commands.length)
  expect(order.slice(0, ended).filter((id) => id < commands.length).length).toBe(commands.length)
  // It does not wait for those that come later.
  expect(ended).toBeLessThan(order.length - FIT)
})
