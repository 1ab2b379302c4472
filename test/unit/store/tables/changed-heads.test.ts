import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { zeroHlc, type Hlc } from '../../../../src/strand/hlc.js'
import { changedHeads } from '../../../../workers/store/tables/changed-heads.js'
import { blockKey } from '../../../../workers/store/tables/tables.js'
import { TestShard, appendNumber, replyOf } from '../../../support/shard/shard.js'

let shard: TestShard

beforeEach(() => {
  shard = new TestShard()
})

afterEach(() => shard.remove())

/** Appends one record. @returns it with the clock of the shard after it */
function append(agent: string, n: number): { seq: number; hash: string; hlc: Hlc } {
  const { seq, id } = replyOf(shard.ask(appendNumber(agent, n)))
  return { seq, hash: id, hlc: shard.store.lastHlc }
}

/** All heads that changed after a clock, from as many calls as needed. */
function allChanged(after: Hlc) {
  const heads = new Map<number, { agentNo: number; seq: number; hash: string }>()
  let calls = 0
  for (let from = after, end = false; !end; calls++) {
    const found = changedHeads(shard.environment, from)
    for (const head of found.heads) heads.set(head.agentNo, head)
    from = found.reached
    end = found.end
  }
  return { heads: [...heads.values()], calls }
}

it('returns the last record of each agent after any clock, also within a millisecond', () => {
  const written = Array.from({ length: 60 }, (_none, n) => append(`agent-${n % 7}`, n))
  for (let from = 0; from < written.length; from++) {
    const { heads } = allChanged(written[from]?.hlc ?? zeroHlc)
    const later = written.slice(from + 1)
    const expected = Array.from({ length: 7 }, (_none, no) =>
      later.findLast((_record, at) => (from + 1 + at) % 7 === no),
    ).flatMap((record, agentNo) =>
      record === undefined ? [] : [{ agentNo, seq: record.seq, hash: record.hash }],
    )
    expect(heads.sort((left, right) => left.agentNo - right.agentNo)).toEqual(expected)
  }
  expect(allChanged(zeroHlc).heads).toHaveLength(7)
})

it('continues over several calls when there are more blocks than one call reads', () => {
  const last = Array.from({ length: 3 * limits.logScanBlocks }, (_none, n) => append('a', n)).at(-1)
  const { heads, calls } = allChanged(zeroHlc)
  expect(calls).toBeGreaterThan(2)
  expect(heads).toEqual([{ agentNo: 0, seq: last?.seq, hash: last?.hash }])
  expect(allChanged(last?.hlc ?? zeroHlc)).toEqual({ heads: [], calls: 1 })
})

it('skips and reports a record that does not match its checksum, and returns the record before it', () => {
  const commands = Array.from({ length: 4 }, (_none, n) => appendNumber('a', n))
  const outcomes = shard.run(...commands).map(replyOf)
  const block = Buffer.from(shard.environment.blocks.get(blockKey(0)) ?? Buffer.alloc(0))
  block[block.length - 1] = (block[block.length - 1] ?? 0) ^ 1
  shard.environment.blocks.putSync(blockKey(0), block)
  expect(allChanged(zeroHlc).heads).toEqual([{ agentNo: 0, seq: 3, hash: outcomes[2]?.id }])
  expect(changedHeads(shard.environment, zeroHlc).damagedAfter).toEqual(zeroHlc)
})
