import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fc } from '../../../support/fast-check.js'
import { open, type RootDatabase } from 'lmdb'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { addToFilter, filterLine, mayContain } from '../../../../workers/store/hash-index/filter.js'
import type { HashDatabase } from '../../../../workers/store/hash-index/format.js'
import { getPart, putPart } from '../../../../workers/store/hash-index/format.js'
import {
  HashIndex,
  prefixOf,
  prefixRange,
  type HashIndexOptions,
} from '../../../../workers/store/hash-index/hash-index.js'

const small = { memtableEntriesMax: 8, entriesMax: 16, fanout: 3, mergeEntriesPerStep: 4, chunkEntries: 4 }

let directory: string
let root: RootDatabase<Buffer, Buffer>
let db: HashDatabase

function openDatabase(): void {
  root = open<Buffer, Buffer>({ path: directory, maxDbs: 2, encoding: 'binary', keyEncoding: 'binary' })
  db = root.openDB<Buffer, Buffer>('hashes', { encoding: 'binary', keyEncoding: 'binary' })
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hash-index-'))
  openDatabase()
})

afterEach(async () => {
  await root.close()
  rmSync(directory, { recursive: true, force: true })
})

function step(index: HashIndex): void {
  root.transactionSync(() => {
    index.commitStep()
  })
}

function runAllSteps(index: HashIndex): void {
  for (let steps = 0; index.needsStep; steps += 1) {
    if (steps > 100_000) throw new Error('The index still needs steps after 100,000 steps')
    step(index)
  }
}

/** The prefix of the entry at `location`, distributed like a real hash. */
function spreadPrefix(location: number): number {
  return prefixOf(createHash('sha256').update(String(location)).digest('hex'))
}

/** Adds the locations from `from` up to but not including `to`, with a step after every fifth. */
function fill(index: HashIndex, from: number, to: number): void {
  for (let location = from; location < to; location += 1) {
    index.add(spreadPrefix(location), location)
    if (location % 5 === 0) step(index)
  }
}

/** Ids of the runs that have at least one part in the database. Keys of kind 0 are the metadata. */
function storedRunIds(): number[] {
  const ids = new Set<number>()
  for (const key of db.getKeys()) if (key[0] !== 0) ids.add(key.readUInt32BE(1))
  return [...ids].sort((left, right) => left - right)
}

interface Metadata {
  levels: { id: number }[][]
  unfinished: { id: number }[]
}

function storedMetadata(): Metadata {
  return JSON.parse(String(getPart(db, Buffer.alloc(9)))) as Metadata
}

describe('the prefix of a hash', () => {
  it('is in the range of the first digits of the hash', () => {
    const hash = createHash('sha256').update('').digest('hex')
    for (const digits of [8, 13, 14, 15, 64]) {
      const [low, high] = prefixRange(hash.slice(0, digits))
      expect(high - low).toBe(digits < 14 ? 2 ** (53 - digits * 4) - 1 : 0)
      expect(prefixOf(hash) >= low && prefixOf(hash) <= high).toBe(true)
    }
  })

  it('is its first 53 bits', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        const hex = Buffer.from(bytes).toString('hex')
        expect(prefixOf(hex)).toBe(Number(BigInt(`0x${hex}`) >> 203n))
      }),
    )
  })
})

describe('the filter', () => {
  it('contains everything that was added', () => {
    fc.assert(
      fc.property(
        fc.array(fc.maxSafeNat(), { maxLength: 200 }),
        fc.integer({ min: 1, max: 9 }),
        (all, lines) => {
          const filter = new Uint32Array(lines * 16)
          for (const prefix of all) addToFilter(filter, prefix)
          expect(all.filter((prefix) => !mayContain(filter, prefix))).toEqual([])
        },
      ),
    )
  })

  it('is wrong about less than 3 of 100 hashes that were not added', () => {
    const filter = new Uint32Array(Math.ceil((20_000 * 10) / 512) * 16)
    for (let location = 0; location < 20_000; location += 1) addToFilter(filter, spreadPrefix(location))
    let wrong = 0
    for (let location = 20_000; location < 40_000; location += 1) {
      if (mayContain(filter, spreadPrefix(location))) wrong += 1
    }
    expect(wrong).toBeGreaterThan(0)
    expect(wrong / 20_000).toBeLessThan(0.03)
  })

  it('keeps the highest prefix within its lines', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 26 }), (lines) => {
        expect(filterLine(Number.MAX_SAFE_INTEGER, lines)).toBe(lines - 1)
      }),
    )
  })
})

/** One operation on an index in the model test. */
type Operation =
  | { kind: 'add'; prefixes: number[] }
  | { kind: 'step' }
  | { kind: 'flush' }
  | { kind: 'reopen' }

function operations(prefix: fc.Arbitrary<number>): fc.Arbitrary<Operation[]> {
  const operation = fc.oneof(
    { weight: 12, arbitrary: fc.record({ kind: fc.constant('add' as const), prefixes: groupOf(prefix) }) },
    { weight: 3, arbitrary: fc.constant<Operation>({ kind: 'step' }) },
    { weight: 1, arbitrary: fc.constant<Operation>({ kind: 'flush' }) },
    { weight: 1, arbitrary: fc.constant<Operation>({ kind: 'reopen' }) },
  )
  return fc.array(operation, { minLength: 20, maxLength: 120 })
}

function groupOf(prefix: fc.Arbitrary<number>): fc.Arbitrary<number[]> {
  return fc.array(prefix, { minLength: 1, maxLength: 8 })
}

/** Runs `script` on an index and on a map, and compares the results of both for every prefix. */
function checkAgainstMap(script: Operation[], sizes: HashIndexOptions): void {
  root.transactionSync(() => {
    db.clearSync()
  })
  const added: number[] = []
  let index = HashIndex.open(db, sizes)
  for (const operation of script) {
    if (operation.kind === 'add') {
      for (const prefix of operation.prefixes) index.add(prefix, added.push(prefix) - 1)
    }
    if (operation.kind === 'flush') root.transactionSync(() => index.flush())
    if (operation.kind !== 'reopen') step(index)
    else index = reopenAndReplay(added, sizes)
  }
  const model = new Map<number, number[]>()
  for (const [location, prefix] of added.entries()) {
    model.set(prefix, [location, ...(model.get(prefix) ?? [])])
  }
  for (const [prefix, locations] of model) {
    expect(index.find(prefix)).toEqual(locations)
    expect(oneByOne(index, prefix)).toEqual(locations)
    expectRange(index, added, prefix)
  }
  runAllSteps(index)
  for (const [prefix, locations] of model) {
    expect(index.find(prefix)).toEqual(locations)
    expect(oneByOne(index, prefix)).toEqual(locations)
    expectRange(index, added, prefix)
    if (!model.has(prefix + 1)) expect(index.find(prefix + 1)).toEqual([])
  }
  expect(storedRunIds()).toEqual(publishedRunIds())
}

/** Expects all locations of the prefixes that share their first 32 bits with `prefix`, and of the next few. */
function expectRange(index: HashIndex, added: readonly number[], prefix: number): void {
  const low = prefix - (prefix % 2 ** 21)
  const ranges: [number, number][] = [
    [low, low + 2 ** 21 - 1],
    [prefix, prefix + 3],
  ]
  for (const [from, to] of ranges) {
    const expected = added.flatMap((one, location) => (one >= from && one <= to ? [location] : []))
    expect(index.findBetween(from, to).toSorted((left, right) => left - right)).toEqual(expected)
  }
}

/** All locations of a prefix, each found as the newest one below the previous. */
function oneByOne(index: HashIndex, prefix: number): number[] {
  const found: number[] = []
  let below = Infinity
  for (;;) {
    const newest = index.newestBelow(prefix, below)
    if (newest === undefined) return found
    found.push(newest)
    below = newest
  }
}

function reopenAndReplay(added: readonly number[], sizes: HashIndexOptions): HashIndex {
  const index = HashIndex.open(db, sizes)
  for (let location = index.coveredUpTo + 1; location < added.length; location += 1) {
    index.add(added[location] ?? -1, location)
  }
  return index
}

function publishedRunIds(): number[] {
  if (db.get(Buffer.alloc(9)) === undefined) return []
  const ids = storedMetadata().levels.flat()
  return ids.map((run) => run.id).sort((left, right) => left - right)
}

describe('the hash index', () => {
  it('finds the same locations as a map, over flushes, merges and reopens', () => {
    const spread = fc.integer({ min: 0, max: 2 ** 30 }).map(spreadPrefix)
    fc.assert(
      fc.property(operations(spread), (script) => checkAgainstMap(script, small)),
      { numRuns: 60 },
    )
  })

  it('finds all locations of a shared prefix, newest first', () => {
    fc.assert(
      fc.property(operations(fc.integer({ min: 0, max: 6 })), (script) => checkAgainstMap(script, small)),
      { numRuns: 60 },
    )
  })

  it('can have more than one segment of filter and fences', () => {
    const sizes = { memtableEntriesMax: 4_096, fanout: 4, mergeEntriesPerStep: 1, chunkEntries: 4 }
    const first = HashIndex.open(db, sizes)
    for (let location = 0; location < 28_672; location += 1) {
      first.add(spreadPrefix(location), location)
      if (location % 1_024 === 1_023) step(first)
    }
    const kinds = new Set<string>()
    for (const key of db.getKeys()) if (key.readUInt32BE(5) > 0) kinds.add(`kind ${key[0]}`)
    expect(kinds).toEqual(new Set(['kind 1', 'kind 2', 'kind 3']))
    const second = HashIndex.open(db, sizes)
    expect(second.coveredUpTo).toBe(28_671)
    for (let location = 0; location <= second.coveredUpTo; location += 1) {
      if (second.find(spreadPrefix(location))[0] !== location) expect.fail(`Location ${location} is lost`)
    }
  })

  it('finds its entries after its environment was closed and opened', async () => {
    fill(HashIndex.open(db, small), 0, 500)
    await root.close()
    openDatabase()
    const index = HashIndex.open(db, small)
    expect(index.coveredUpTo).toBeGreaterThanOrEqual(500 - 8 - 5)
    for (let location = 0; location <= index.coveredUpTo; location += 1) {
      expect(index.find(spreadPrefix(location))).toEqual([location])
    }
  })

  it('needs no entries again after a flush, and limits the number of flushed runs', () => {
    let index = HashIndex.open(db, small)
    // Without steps no runs are merged, so the memtable fills up.
    for (let location = 0; location < small.fanout + small.memtableEntriesMax; location += 1) {
      index.add(spreadPrefix(location), location)
      root.transactionSync(() => index.flush())
      const next = reopenAndReplay(
        Array.from({ length: location + 1 }, (_none, at) => spreadPrefix(at)),
        small,
      )
      if (location < small.fanout) expect(next.coveredUpTo).toBe(location)
      for (let at = 0; at <= location; at += 1) expect(next.find(spreadPrefix(at))).toEqual([at])
      index = next
    }
    expect(storedMetadata().levels[0]).toHaveLength(small.fanout)
  })

  it('drops an unfinished merge when it is opened, and loses no entries', () => {
    const first = HashIndex.open(db, small)
    let location = 0
    for (; location < 24; location += 1) {
      first.add(spreadPrefix(location), location)
      if (location % 8 === 7) step(first)
    }
    const unfinished = storedMetadata().unfinished.map((run) => run.id)
    expect(unfinished).toHaveLength(1)
    expect(storedRunIds()).toEqual(expect.arrayContaining(unfinished))

    const second = HashIndex.open(db, small)
    expect(second.coveredUpTo).toBe(23)
    expect(second.needsStep).toBe(true)
    runAllSteps(second)
    expect(storedRunIds()).not.toEqual(expect.arrayContaining(unfinished))
    expect(storedRunIds()).toEqual(publishedRunIds())
    for (let at = 0; at < location; at += 1) expect(second.find(spreadPrefix(at))).toEqual([at])
  })

  it('finds all entries in the middle of a merge', () => {
    const index = HashIndex.open(db, small)
    let middles = 0
    for (let location = 0; location < 300; location += 1) {
      index.add(spreadPrefix(location), location)
      step(index)
      if (location < 8 || storedMetadata().unfinished.length === 0) continue
      middles += 1
      for (let at = 0; at <= location; at += 1) expect(index.find(spreadPrefix(at))).toEqual([at])
    }
    expect(middles).toBeGreaterThan(20)
  })

  it('keeps up with groups as large as its memtable when a step merges only one entry', () => {
    const sizes = { ...small, mergeEntriesPerStep: 1 }
    const index = HashIndex.open(db, sizes)
    for (let location = 0; location < 8_000; location += 1) {
      index.add(spreadPrefix(location), location)
      if (location % 8 === 7) step(index)
    }
    for (const runs of storedMetadata().levels) expect(runs.length).toBeLessThanOrEqual(sizes.fanout * 3)
    expect(storedMetadata().levels.length).toBeLessThanOrEqual(7)
  })

  it('keeps up after its memtable was made smaller', () => {
    const large = { ...small, memtableEntriesMax: 32, entriesMax: 64, mergeEntriesPerStep: 1 }
    let location = 0
    const add = (index: HashIndex, upTo: number) => {
      for (; location < upTo; location += 1) {
        index.add(spreadPrefix(location), location)
        if (location % 8 === 7) step(index)
      }
    }
    // Each of these numbers leaves the levels as full as they can be.
    for (const upTo of [96, 288, 864, 2_592]) {
      db.clearSync()
      location = 0
      add(HashIndex.open(db, large), upTo)
      // A step fails if too many runs wait.
      add(HashIndex.open(db, { ...small, mergeEntriesPerStep: 1 }), upTo + 4_000)
      for (const runs of storedMetadata().levels) expect(runs.length).toBeLessThanOrEqual(small.fanout * 3)
    }
  })

  it('keeps the chunk size with which it was created', () => {
    fill(HashIndex.open(db, small), 0, 200)
    const index = HashIndex.open(db, { ...small, chunkEntries: 64 })
    runAllSteps(index)
    for (let location = 0; location <= index.coveredUpTo; location += 1) {
      expect(index.find(spreadPrefix(location))).toEqual([location])
    }
    expect(storedRunIds()).toEqual(publishedRunIds())
  })

  it('writes nothing when the transaction of a step fails', () => {
    const index = HashIndex.open(db, small)
    for (let location = 0; location < 8; location += 1) index.add(spreadPrefix(location), location)
    const failing = (): void =>
      root.transactionSync(() => {
        index.commitStep()
        throw new Error('Disk full')
      })
    expect(failing).toThrow('Disk full')
    expect([...db.getKeys()]).toEqual([])
    expect(HashIndex.open(db, small).coveredUpTo).toBe(-1)
  })

  it('refuses locations that do not rise and groups beyond its memtable', () => {
    const index = HashIndex.open(db, small)
    index.add(1, 5)
    expect(() => index.add(2, 5)).toThrow('locations rise')
    for (let location = 6; location < 21; location += 1) index.add(1, location)
    expect(() => index.add(1, 21)).toThrow('before the memtable is full')
  })

  it('refuses an index of another format', () => {
    root.transactionSync(() => {
      putPart(db, Buffer.alloc(9), Buffer.from('{"version":2}'))
    })
    expect(() => HashIndex.open(db, small)).toThrow('format version 1')
  })
})
