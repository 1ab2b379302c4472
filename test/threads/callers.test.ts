import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { sentBy, type Command } from '../../src/protocol/messages.js'
import { appendNumber, TestShard } from '../support/shard/shard.js'

/* A shard takes reads, and long writes, of its callers in turn. */

/** The clock goes on with each look at it, so that a turn has time for few commands. */
const READING_MS = 10
const FIT = Math.ceil(limits.shardTurnMs / READING_MS) + 1
const MANY = 60
const LATE = MANY

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
  shard.run(appendNumber('a', 0))
  shard.frames.length = 0
  shard.everyLookTakes(READING_MS)
})
afterEach(() => shard.remove())

const told = () => shard.frames.flatMap(({ outcomes }) => outcomes).map(([id]) => id)

function untilIdle(): void {
  while (shard.turn());
}

/** Many commands of one caller, then one of another; gives after how many of them that was answered, at the soonest and in fact. */
function late(command: (n: number) => Command): { soonest: number; place: number } {
  shard.turn(Array.from({ length: MANY }, (_none, n) => [n, sentBy('one', command(n))]))
  const soonest = told().length
  shard.turn([[LATE, sentBy('other', command(LATE))]])
  untilIdle()
  expect(told()).toHaveLength(MANY + 1)
  expect(told().filter((id) => id !== LATE)).toEqual(Array.from({ length: MANY }, (_none, n) => n))
  return { soonest, place: told().indexOf(LATE) }
}

it.each<[string, (n: number) => Command]>([
  ['read', () => ({ kind: 'edgeList', agent: 'a', direction: 'out', limit: 10, lookMax: 10 })],
  ['long write', (n) => ({ kind: 'agentCreate', agent: `m${n}`, zone: 'free', isMember: true, options: {} })],
])('a %s of another caller waits for one of each caller, however many wait', (_name, command) => {
  const { soonest, place } = late(command)
  expect(soonest).toBeLessThanOrEqual(FIT)
  expect(place).toBeLessThanOrEqual(soonest + 2)
})

it('begins to watch before it answers any read that came later', () => {
  const reads = Array.from({ length: MANY }, (_none, n): [number, Command] => [
    n,
    sentBy('one', { kind: 'agentHead', agent: 'a' }),
  ])
  const watch: Command = { kind: 'watch', agent: 'a', on: true, front: 0 }
  const locate = sentBy('other', { kind: 'strandLocate', agent: 'a' })
  shard.turn([...reads, [MANY, watch], [MANY + 1, locate]])
  untilIdle()
  expect(told().indexOf(MANY)).toBeLessThan(told().indexOf(MANY + 1))
  shard.frames.length = 0
  shard.turn([[0, appendNumber('a', 1)]])
  expect(shard.frames.flatMap(({ events }) => events)).toHaveLength(1)
})
