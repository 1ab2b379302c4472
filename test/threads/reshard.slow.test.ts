import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fc } from '../support/fast-check.js'
import { afterEach, describe, expect, it } from 'vitest'
import { shardOf } from '../../src/strand/placement.js'
import {
  formatClockCursor,
  parseClockCursor,
  notYetPassed,
  type ClockCursor,
} from '../../src/front/http/streams/cursor.js'
import { storeName } from '../../src/data/format.js'
import { parseHlc, zeroHlc } from '../../src/strand/hlc.js'
import type { RecordPosition } from '../../src/strand/record-position.js'
import { reshard, hasStrayUsers } from '../../workers/reshard/reshard.js'
import { SinkLog } from '../../workers/sink/log.js'
import { authKey } from '../../workers/store/tables/auth-table.js'
import { commitDurably } from '../../workers/store/environment.js'
import { openEnvironment } from '../../workers/store/open-environment.js'
import { lastBlockNo } from '../../workers/store/tables/ingest-log.js'
import { blockKey, importedBlocksFrom } from '../../workers/store/tables/tables.js'
import { appendNumber, codeOf, keyed, replyOf, TestShard } from '../support/shard/shard.js'

let folder = mkdtempSync(join(tmpdir(), 'strandfast-reshard-'))
let open: TestShard[] = []
let generations = 0

afterEach(async () => {
  for (const shard of open.splice(0)) await shard.close()
  rmSync(folder, { recursive: true, force: true })
  folder = mkdtempSync(join(tmpdir(), 'strandfast-reshard-'))
})

/** Creates the shards of a directory, in the process of the test. */
function makeShards(count: number): TestShard[] {
  const generation = join(folder, String(generations++))
  open = Array.from({ length: count }, (_none, shard) => new TestShard(join(generation, `shard-${shard}`)))
  return open
}

/** Closes the shards, moves their contents to `count` new shards and opens those. */
async function move(count: number): Promise<TestShard[]> {
  const from = open
  for (const shard of from) await shard.close()
  open = []
  const generation = join(folder, String(generations++))
  const to = Array.from({ length: count }, (_none, shard) => join(generation, `shard-${shard}`))
  await reshard({ from: from.map(({ path }) => path), to, rootAgent: 'default', onProgress: () => {} })
  open = to.map((path) => new TestShard(path))
  return open
}

const ownerOf = (agent: string): TestShard => {
  const owner = open[shardOf(agent, open.length)]
  if (owner === undefined) throw new Error('Expected a shard')
  return owner
}
const append = (agent: string, n: number) => replyOf(ownerOf(agent).ask(appendNumber(agent, n)))

/** Reads a global stream as a server does, each shard in pages, until its end or `most` records. */
function read(
  cursor: string | undefined,
  { most = Infinity, limit = 2 } = {},
): { names: string[]; cursor: string } {
  const begin: ClockCursor | undefined =
    cursor === undefined
      ? { reached: open.map(() => zeroHlc), seen: [] }
      : parseClockCursor(cursor, open.length)
  if (begin === undefined) throw new Error(`Expected a cursor, got ${cursor}`)
  const state = begin
  const names: string[] = []
  const cursorNow = () =>
    formatClockCursor({ reached: state.reached, seen: notYetPassed(state.seen, state.reached) })
  for (const [number, shard] of open.entries()) {
    for (let end = false; !end;) {
      const after: RecordPosition = state.reached[number] ?? zeroHlc
      const page = shard.ask({ kind: 'logPage', after, limit, seen: state.seen })
      if (page.kind !== 'page') throw new Error(`Expected a page, got ${page.kind}`)
      for (const { agent, seq, hlc, tie } of page.events) {
        const reading = parseHlc(hlc) ?? zeroHlc
        state.reached[number] = tie === undefined ? reading : { ...reading, tie }
        if (names.push(`${agent} ${seq}`) >= most) return { names, cursor: cursorNow() }
      }
      state.reached[number] = page.reached
      end = page.end
    }
  }
  return { names, cursor: cursorNow() }
}

describe('a global stream', () => {
  it('returns each record once, also records with the same reading from different shards, wherever it is interrupted', async () => {
    makeShards(3)
    const agents = Array.from({ length: 12 }, (_none, n) => `agent-${n}`)
    for (const n of [1, 2, 3]) {
      for (const shard of open) shard.nowMs++
      for (const agent of agents) {
        // A large record has a separate block, so records with the same reading begin several blocks.
        const data = n === 2 ? { large: 'x'.repeat(12_000) } : { n }
        const body = Buffer.from(JSON.stringify({ data }))
        replyOf(ownerOf(agent).ask({ ...appendNumber(agent, n), body }))
      }
    }
    const whole = read(undefined).names.toSorted()
    expect(whole).toHaveLength(36)
    await move(1)
    const readings = read(undefined, { limit: 1 })
    expect(readings.names.toSorted()).toEqual(whole)
    for (let most = 1; most < 36; most++) {
      const first = read(undefined, { most, limit: 1 })
      const rest = read(first.cursor, { limit: 3 })
      expect([...first.names, ...rest.names].toSorted()).toEqual(whole)
    }
  })

  it('continues after a cursor from any number of shards and moves, without duplicates or gaps', async () => {
    const step = fc.record({
      shards: fc.integer({ min: 1, max: 4 }),
      writes: fc.array(
        fc.record({ agent: fc.integer({ min: 0, max: 9 }), pauseMs: fc.integer({ min: 0, max: 2 }) }),
        {
          maxLength: 14,
        },
      ),
      most: fc.integer({ min: 1, max: 12 }),
      limit: fc.integer({ min: 1, max: 4 }),
    })
    const run = async (
      steps: { shards: number; writes: { agent: number; pauseMs: number }[]; most: number; limit: number }[],
    ) => {
      makeShards(steps[0]?.shards ?? 1)
      const shown: string[] = []
      let cursor: string | undefined
      let nowMs = open[0]?.nowMs ?? 0
      for (const { shards, writes, most, limit } of steps) {
        if (shards !== open.length) await move(shards)
        for (const [n, { agent, pauseMs }] of writes.entries()) {
          nowMs += pauseMs
          for (const shard of open) shard.nowMs = nowMs
          append(`agent-${agent}`, n)
        }
        const part = read(cursor, { most, limit })
        shown.push(...part.names)
        ;({ cursor } = part)
      }
      const rest = read(cursor)
      expect([...shown, ...rest.names].toSorted()).toEqual(read(undefined).names.toSorted())
      for (const shard of open.splice(0)) await shard.close()
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 4 }), run), { numRuns: 20 })
  })

  it('misses no record that is written after a move, even if the clock of a shard was ahead', async () => {
    makeShards(2)
    const [behind = '', ahead = ''] = ['agent-0', 'agent-1', 'agent-2', 'agent-3']
      .toSorted((left, right) => shardOf(left, 2) - shardOf(right, 2))
      .filter((_name, index) => index === 0 || index === 3)
    expect([shardOf(behind, 2), shardOf(ahead, 2)]).toEqual([0, 1])
    append(behind, 1)
    const fast = ownerOf(ahead)
    fast.nowMs += 50_000
    append(ahead, 1)
    const { cursor } = read(undefined)
    await move(3)
    append(behind, 2)
    append(ahead, 2)
    expect(read(cursor).names.toSorted()).toEqual([`${behind} 2`, `${ahead} 2`].toSorted())
  })
})

describe('pending state', () => {
  it('includes proposals, which are applied when they are due after a move', async () => {
    makeShards(1)
    const names = ['governed-1', 'governed-2', 'governed-3']
    const hashes = names.map((agent) => {
      ownerOf(agent).ask({ kind: 'agentCreate', agent, zone: 'governed', options: {} })
      const { id: hash } = append(agent, 1)
      const proposed = ownerOf(agent).ask({
        kind: 'recordMutate',
        agent,
        hash,
        action: 'delete',
        principal: 'test',
        options: {},
      })
      expect(replyOf(proposed)).toMatchObject({ state: 'proposed' })
      return String(hash)
    })
    await move(3)
    for (const shard of open) {
      shard.nowMs += 59_000
      shard.ask({ kind: 'proposalsSweep', options: {} })
    }
    const deleted = () =>
      names.map(
        (agent, n) =>
          replyOf(ownerOf(agent).ask({ kind: 'recordGet', agent, hash: hashes[n] ?? '' })).deleted,
      )
    expect(deleted()).toEqual([false, false, false])
    for (const shard of open) {
      shard.nowMs += 1_000
      shard.ask({ kind: 'proposalsSweep', options: {} })
    }
    expect(deleted()).toEqual([true, true, true])
  })

  it('includes idempotent answers and their expiry, also of rows without a placement', async () => {
    makeShards(1)
    const names = ['a', 'b', 'c', 'd']
    const first = names.map((agent) => replyOf(ownerOf(agent).ask(appendNumber(agent, 1, keyed('k')))))
    for (const { environment } of open) {
      const rows = [...environment.idempotency.getRange({})]
      for (const { key, value } of rows) {
        const { place, ...row } = JSON.parse(value.toString())
        expect(place).toBeTypeOf('number')
        await environment.idempotency.put(Buffer.from(key), Buffer.from(JSON.stringify(row)))
      }
    }
    await move(4)
    const again = names.map((agent) => ownerOf(agent).ask(appendNumber(agent, 1, keyed('k'))))
    expect(again.map((outcome) => replyOf(outcome))).toEqual(first)
    for (const shard of open) expect(shard.environment.expiries.getKeysCount({})).toBe(4)
  })

  it('includes each idempotent answer only in the shard of its agent', async () => {
    makeShards(2)
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const agent of names) ownerOf(agent).ask(appendNumber(agent, 1, keyed('k')))
    await move(3)
    const rows = open.map(({ environment }) => environment.idempotency.getKeysCount({}))
    expect(rows).toEqual([0, 1, 2].map((shard) => names.filter((name) => shardOf(name, 3) === shard).length))
  })
})

describe('the PostgreSQL sink', () => {
  it('delivers everything again after a move, under a name that no earlier cursor has', async () => {
    makeShards(2)
    for (const n of [1, 2, 3]) {
      for (const agent of ['a', 'b', 'c', 'd', 'e']) {
        ownerOf(agent).ask({ kind: 'ingestOne', agent, body: Buffer.from(`{"n":${n}}`), options: {} })
      }
    }
    const take = () =>
      open.flatMap((shard, number) => {
        const log = new SinkLog(number, () => shard.environment)
        log.seek(undefined)
        return (
          log.nextBatch()?.rows.map(({ agent, seq, contentHash }) => `${agent} ${seq} ${contentHash}`) ?? []
        )
      })
    const before = take()
    expect(before).toHaveLength(15)
    await move(3)
    expect(take().toSorted()).toEqual(before.toSorted())
    const format = {
      shards: 2,
      createdAtMs: 1_700_000_000_000,
      masterSeedFingerprint: 'ab',
      layout: 0,
      switching: false,
      tokenEra: 0,
    }
    const names = [0, 1, 2].map((layout) => storeName({ ...format, layout }))
    expect(new Set(names).size).toBe(3)
    // The name from before directories could be moved must not change, or cursors in databases would be lost.
    expect(names[0]).toBe('d3de43c80d2bd0d7aa812b0f6ef728fe')
  })
})

describe('a move', () => {
  /** Changes a byte of the last record's body. */
  function damage(checksum: boolean): void {
    const [shard] = open
    if (shard === undefined) throw new Error('Expected a shard')
    const { blocks } = shard.environment
    const key = blockKey(lastBlockNo(shard.environment))
    const block = Buffer.from(blocks.get(key) ?? '')
    block[block.length - 2] = (block.at(-2) ?? 0) ^ 1
    const from = block.readUInt32LE(2)
    if (checksum) block.writeUInt32LE(crc32(block.subarray(from + 4)), from)
    blocks.putSync(key, block)
  }

  it('is refused for a record that exists twice', async () => {
    const [shard] = makeShards(1)
    append('agent', 1)
    const { blocks, importedBlocks } = shard?.environment ?? {}
    importedBlocks?.putSync(blockKey(importedBlocksFrom), Buffer.from(blocks?.get(blockKey(0)) ?? ''))
    await expect(move(2)).rejects.toThrow('No run begins at record 0 of agent number 0')
  })

  it('is refused for a record that does not match its checksum', async () => {
    makeShards(1)
    append('agent', 1)
    append('agent', 2)
    damage(false)
    await expect(move(2)).rejects.toThrow('damaged at shard 0, block 1, record 0')
  })

  it('is refused for a record that does not match its hash', async () => {
    makeShards(1)
    append('agent', 1)
    append('agent', 2)
    damage(true)
    await expect(move(2)).rejects.toThrow('Record 2 of agent number 0 does not have the hash of its header')
  })

  it('is refused for a strand whose end differs from the row of its agent', async () => {
    makeShards(1)
    append('agent', 1)
    append('agent', 2)
    const path = open[0]?.path ?? ''
    // A closed store has all runs in their table.
    await open[0]?.close()
    const environment = openEnvironment(path, 'write')
    commitDurably(environment, () => {
      for (const key of environment.strands.getKeys({ reverse: true, limit: 1 }))
        environment.strands.remove(key)
    })
    await environment.root.close()
    const to = [0, 1].map((shard) => join(folder, 'moved', `shard-${shard}`))
    open = []
    const moving = reshard({ from: [path], to, rootAgent: 'default', onProgress: () => {} })
    await expect(moving).rejects.toThrow('has another end after the move')
  })

  it('is refused for a directory with users of another default agent', async () => {
    makeShards(2)
    const users = (agent: string) => hasStrayUsers({ from: open.map(({ path }) => path), rootAgent: agent })
    const [zero = '', one = ''] = [0, 1].map((shard) =>
      ['a', 'b', 'c', 'd'].find((name) => shardOf(name, 2) === shard),
    )
    await open[0]?.environment.auth.put(Buffer.from(authKey('', 'user', 'x')), Buffer.from('{"value":1}'))
    await open[1]?.environment.auth.put(Buffer.from(authKey('acme', 'user', 'x')), Buffer.from('{"value":1}'))
    for (const shard of open) await shard.close()
    expect([await users(zero), await users(one)]).toEqual([false, true])
    open = []
  })
})

it('assigns new agent numbers, and finds every agent and record by them', async () => {
  makeShards(2)
  for (const agent of ['a', 'b', 'c', 'd', 'e']) append(agent, 1)
  await move(1)
  for (const agent of ['a', 'b', 'c', 'd', 'e']) {
    expect(append(agent, 2)).toMatchObject({ seq: 2 })
    expect(codeOf(ownerOf(agent).ask({ kind: 'agentCreate', agent, zone: 'free', options: {} }))).toBe(
      'agent_exists',
    )
  }
  const numbers = [...(open[0]?.environment.names.getKeys({}) ?? [])].map((key) => key.readUInt32BE(0))
  expect(numbers).toEqual([0, 1, 2, 3, 4])
})
