import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { commitDurably, type Environment } from '../../../../workers/store/environment.js'
import { openEnvironment } from '../../../../workers/store/open-environment.js'
import { Memtable } from '../../../../workers/store/log/memtable.js'

let directory: string
let memtable: Memtable
let environment: Environment

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-memtable-'))
  memtable = new Memtable()
  environment = openEnvironment(directory, 'write', memtable)
})

afterEach(async () => {
  await environment.root.close()
  rmSync(directory, { recursive: true, force: true })
})

function flush(): void {
  commitDurably(environment, () => memtable.move(() => {}))
  memtable.clear()
}

const key = (n: number) => Buffer.from([0x61, n])

const step = fc.oneof(
  fc.record({ kind: fc.constant('put' as const), n: fc.nat(12), value: fc.nat(255) }),
  fc.record({ kind: fc.constant('remove' as const), n: fc.nat(12) }),
  fc.record({ kind: fc.constant('flush' as const) }),
)

const ranges = fc.record({
  from: fc.option(fc.nat(13), { nil: undefined }),
  to: fc.option(fc.nat(13), { nil: undefined }),
  reverse: fc.boolean(),
  inclusiveEnd: fc.boolean(),
  limit: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
})

describe('a table with a memtable in front of it', () => {
  it('returns the same rows as a sorted list, with any flushes', () => {
    const { agents: table } = environment
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.array(ranges, { maxLength: 8 }), (steps, reads) => {
        for (const old of Array.from(table.getKeys())) table.remove(old)
        const model = new Map<number, number>()
        for (const one of steps) {
          if (one.kind === 'flush') flush()
          else if (one.kind === 'remove') {
            table.remove(key(one.n))
            model.delete(one.n)
          } else {
            table.put(key(one.n), Buffer.of(one.value))
            model.set(one.n, one.value)
          }
        }
        for (let n = 0; n <= 13; n++) expect(table.get(key(n))?.[0]).toBe(model.get(n))
        for (const { from, to, reverse, inclusiveEnd, limit } of reads) {
          const wanted = [...model]
            .sort(([one], [other]) => (reverse ? other - one : one - other))
            .filter(([n]) => from === undefined || (reverse ? n <= from : n >= from))
            .filter(([n]) => to === undefined || (reverse ? n > to : n < to) || (inclusiveEnd && n === to))
          const bounds = {
            ...(from !== undefined && { start: key(from) }),
            ...(to !== undefined && { end: key(to) }),
          }
          const range = { ...bounds, reverse, inclusiveEnd, ...(limit !== undefined && { limit }) }
          const found = Array.from(table.getRange(range), ({ key: at, value }) => [at[1], value[0]])
          expect(found).toEqual(wanted.slice(0, limit))
          expect(Array.from(table.getKeys(range), (at) => at[1])).toEqual(
            wanted.slice(0, limit).map(([n]) => n),
          )
          if (!reverse && !inclusiveEnd) expect(table.getKeysCount(bounds)).toBe(wanted.length)
        }
      }),
      { numRuns: 150 },
    )
  })

  it('continues a range while rows are put and removed, and appends only after all rows of both', () => {
    const { agents: table } = environment
    for (const n of [1, 3, 5]) table.put(key(n), Buffer.of(n))
    flush()
    for (const n of [2, 4]) table.put(key(n), Buffer.of(n))
    const seen: unknown[] = []
    for (const { key: at } of table.getRange()) {
      seen.push(at[1])
      if (at[1] === 2) table.remove(key(4))
    }
    expect(seen).toEqual([1, 2, 3, 5])
    expect(table.append(key(5), Buffer.of(9))).toBe(false)
    expect(table.append(key(6), Buffer.of(6))).toBe(true)
    expect(table.append(key(6), Buffer.of(7))).toBe(false)
    flush()
    expect(Array.from(table.getKeys(), (at) => at[1])).toEqual([1, 2, 3, 5, 6])
  })

  it('returns each change once, in order', () => {
    environment.agents.put(key(1), Buffer.of(1))
    environment.names.remove(key(2))
    const changes = memtable.takeChanges()
    expect(changes.map(({ table, key: at, value }) => [table, at[1], value?.length])).toEqual([
      [1, 1, 5],
      [2, 2, undefined],
    ])
    expect(memtable.takeChanges()).toEqual([])
    expect(memtable.bytes).toBeGreaterThan(0)
    flush()
    expect(memtable.bytes).toBe(0)
  })

  it('has a row in LMDB only once it is flushed', async () => {
    environment.agents.put(key(1), Buffer.of(1))
    const reader = openEnvironment(directory, 'read')
    expect(reader.agents.get(key(1))).toBeUndefined()
    flush()
    reader.root.resetReadTxn()
    expect(reader.agents.get(key(1))).toEqual(Buffer.of(1))
    await reader.root.close()
  })
})
