import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { sentBy, type Command } from '../../src/protocol/messages.js'
import { appendNumber, TestShard } from '../support/shard/shard.js'

/* A shard takes reads and long writes round-robin by caller. */

/** Each reading advances the clock by this time, so that a turn has time for few commands. */
const READING_MS = 10
const FIT = Math.ceil(limits.shardTurnMs / READING_MS) + 1
const MANY = 60
const LATE = MANY

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  shard.run(appendNumber('a', 0))
  shard.frames.length = 0
  shard.everyClockReadingTakes(READING_MS)
})
afterEach(() => shard.remove())

const answeredIds = () => shard.frames.flatMap(({ outcomes }) => outcomes).map(([id]) => id)

function untilIdle(): void {
  while (shard.turn());
}

/**
 * Sends many commands of one caller, then one of another caller.
 * @returns the number of answers before the late command at the earliest, and its position in fact
 */
function late(command: (n: number) => Command): { earliest: number; position: number } {
  shard.turn(Array.from({ length: MANY }, (_none, n) => [n, sentBy('one', command(n))]))
  const earliest = answeredIds().length
  shard.turn([[LATE, sentBy('other', command(LATE))]])
  untilIdle()
  expect(answeredIds()).toHaveLength(MANY + 1)
  expect(answeredIds().filter((id) => id !== LATE)).toEqual(Array.from({ length: MANY }, (_none, n) => n))
  return { earliest, position: answeredIds().indexOf(LATE) }
}

it.each<[string, (n: number) => Command]>([
  ['read', () => ({ kind: 'edgeList', agent: 'a', direction: 'out', limit: 10, lookMax: 10 })],
  ['long write', (n) => ({ kind: 'agentCreate', agent: `m${n}`, zone: 'free', isMember: true, options: {} })],
])(
  'a %s of another caller waits for one command of each caller, however many are waiting',
  (_name, command) => {
    const { earliest, position } = late(command)
    expect(earliest).toBeLessThanOrEqual(FIT)
    expect(position).toBeLessThanOrEqual(earliest + 2)
  },
)

it('starts watching before it answers reads that came later', () => {
  const reads = Array.from({ length: MANY }, (_none, n): [number, Command] => [
    n,
    sentBy('one', { kind: 'agentHead', agent: 'a' }),
  ])
  const watch: Command = { kind: 'watch', agent: 'a', on: true, front: 0 }
  const locate = sentBy('other', { kind: 'strandLocate', agent: 'a' })
  shard.turn([...reads, [MANY, watch], [MANY + 1, locate]])
  untilIdle()
  expect(answeredIds().indexOf(MANY)).toBeLessThan(answeredIds().indexOf(MANY + 1))
  shard.frames.length = 0
  shard.turn([[0, appendNumber('a', 1)]])
  expect(shard.frames.flatMap(({ events }) => events)).toHaveLength(1)
})
