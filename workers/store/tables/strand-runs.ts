import { assert } from '../../../src/base/assert.js'
import type { CheckedTable, Table } from './checked-table.js'
import { blockCount, placedAt } from './record-codec.js'
import {
  blockKey,
  decodeRun,
  encodeRun,
  runKey,
  runLength,
  seqMax,
  type FoundRun,
  type StrandRun,
} from './tables.js'

/** With this many runs in memory, they begin to move into the table. */
const RECENT_RUNS_MAX = 16_384

/**
 * The fewest runs that one step writes into the table; a step writes twice as many as were added since the last one.
 */
const STEP_RUNS_MIN = 512

/** The row of the table `meta` that says up to which block the runs are in the table. */
export const runsCoveredKey = Buffer.from('runs-covered-up-to')

/** The tables that runs are stored in and made again from. */
export interface RunTables {
  blocks: Table
  strands: CheckedTable
  meta: CheckedTable
}

/** Runs of the blocks up to `upTo` that are moving into the table; the first `written` of them are there. */
interface Leaving {
  runs: [agentNo: number, run: FoundRun][]
  written: number
  upTo: number
}

/**
 * Where the records of each strand lie: its runs, the older ones in the table `strands`, the newest in memory.
 *
 * A run put into the table with each commit would make LMDB copy and write a page for each agent of the group, which
 * costs more than all the rest of a small write. The blocks contain the same, so runs gather in memory until there are
 * many, and then move into the table in the order of its keys, a part with each commit. At opening, those that are not
 * in the table are made again from the blocks (docs/adr/0002-storage-layout.md).
 */
export class StrandRuns {
  readonly #tables: RunTables
  /** Runs that the table may not have, by agent number, in order. */
  readonly #recent = new Map<number, FoundRun[]>()
  #recentCount = 0
  /** Blocks up to this one are in `#recent` or in the table; undefined before the first look at the store. */
  #seenUpTo: number | undefined
  #coveredUpTo = -1
  #leaving: Leaving | undefined
  #addedSinceStep = 0
  readonly #recentMax: number
  readonly #stepMin: number

  /** `sizes`: for tests, which make them small. */
  constructor(tables: RunTables, sizes: { recentMax?: number; stepMin?: number } = {}) {
    this.#tables = tables
    this.#recentMax = sizes.recentMax ?? RECENT_RUNS_MAX
    this.#stepMin = sizes.stepMin ?? STEP_RUNS_MIN
  }

  /** Runs of the blocks from this one on are in memory only. */
  get firstInMemory(): number {
    return this.#coveredUpTo + 1
  }

  /**
   * Reads the runs of the blocks that were added since the last call; on a view that others write to.
   * @param blocksMax at most so many of them
   * @returns whether there may be more
   */
  catchUp(blocksMax = Infinity): boolean {
    const covered = runsCoveredUpTo(this.#tables)
    if (covered > this.#coveredUpTo) this.#drop(covered)
    const first = Math.max(this.#seenUpTo ?? -1, covered) + 1
    this.#seenUpTo = first - 1
    let left = blocksMax
    for (const { key, value } of this.#tables.blocks.getRange({ start: blockKey(first) })) {
      if (left === 0) return true
      left -= 1
      this.#addBlock(key.readUIntBE(0, 6), Buffer.from(value))
    }
    return false
  }

  /** Adds a run of the newest block. */
  add(agentNo: number, run: FoundRun): void {
    const runs = this.#recent.get(agentNo)
    if (runs === undefined) this.#recent.set(agentNo, [run])
    else runs.push(run)
    this.#recentCount += 1
    this.#addedSinceStep += 1
    this.#seenUpTo = run.blockNo
  }

  /**
   * Puts a run of an imported block into the table at once, within the caller's transaction: imported blocks are no
   * part of the log that runs are made again from. So the table can have a run while it lacks earlier ones.
   */
  putImported(agentNo: number, run: FoundRun): void {
    this.#tables.strands.put(runKey(agentNo, run.firstSeq), encodeRun(run))
  }

  /** The run of an agent that holds `seq`, or the last one before it. */
  before(agentNo: number, seq: number): FoundRun | undefined {
    if (this.#seenUpTo === undefined) this.catchUp()
    const recent = lastBefore(this.#recent.get(agentNo) ?? [], seq)
    if (recent !== undefined && seq < recent.firstSeq + runLength(recent)) return recent
    const kept = this.#tableBefore(agentNo, seq)
    return recent === undefined || (kept !== undefined && kept.firstSeq > recent.firstSeq) ? kept : recent
  }

  /** The runs of an agent from the one that holds `seq`, upwards or downwards. */
  *from(agentNo: number, seq: number, order: 'asc' | 'desc'): Generator<FoundRun> {
    const first = this.before(agentNo, seq)?.firstSeq ?? seq
    const start = runKey(agentNo, first)
    const known = this.#recent.get(agentNo) ?? []
    const { strands } = this.#tables
    if (order === 'asc') {
      const recent = known.filter((run) => run.firstSeq >= first)
      const rows = strands.getRange({ start, end: runKey(agentNo + 1, 0) })
      yield* merged(rows, recent, (left, right) => left - right)
      return
    }
    const recent = known.filter((run) => run.firstSeq <= first).reverse()
    const rows = strands.getRange({ start, end: runKey(agentNo, 0), reverse: true, inclusiveEnd: true })
    yield* merged(rows, recent, (left, right) => right - left)
  }

  /** Does the share of a commit, within its transaction: when many runs have gathered, writes some into the table. */
  commitStep(): void {
    const added = this.#addedSinceStep
    this.#addedSinceStep = 0
    const full = this.#recentCount >= this.#recentMax
    const leaving = this.#leaving ?? (full ? this.#leave() : undefined)
    if (leaving === undefined) return
    this.#take(leaving, Math.max(this.#stepMin, 2 * added))
  }

  /** Writes all runs that have gathered into the table, within the caller's transaction. */
  settle(): void {
    if (this.#leaving !== undefined) this.#take(this.#leaving, Infinity)
    if (this.#recentCount > 0) this.#take(this.#leave(), Infinity)
  }

  /** Writes some of the leaving runs into the table. */
  #take(leaving: Leaving, some: number): void {
    const end = Math.min(leaving.runs.length, leaving.written + some)
    for (; leaving.written < end; leaving.written++) {
      const [agentNo, run] = leaving.runs[leaving.written] ?? []
      assert(agentNo !== undefined && run !== undefined, 'the index is within the runs')
      this.#tables.strands.put(runKey(agentNo, run.firstSeq), encodeRun(run))
    }
    if (leaving.written < leaving.runs.length) return
    this.#tables.meta.put(runsCoveredKey, blockKey(leaving.upTo))
    this.#drop(leaving.upTo)
    this.#leaving = undefined
  }

  /** Begins to move the runs that have gathered into the table, in the order of its keys. */
  #leave(): Leaving {
    const agents = [...this.#recent.keys()].sort((one, other) => one - other)
    const runs: [number, FoundRun][] = []
    for (const agentNo of agents) {
      for (const run of this.#recent.get(agentNo) ?? []) runs.push([agentNo, run])
    }
    assert(this.#seenUpTo !== undefined, 'runs that have gathered are of blocks')
    this.#leaving = { runs, written: 0, upTo: this.#seenUpTo }
    return this.#leaving
  }

  /** Drops the runs of blocks up to `upTo` from memory: the table has them. */
  #drop(upTo: number): void {
    this.#coveredUpTo = upTo
    for (const [agentNo, runs] of this.#recent) {
      const kept = runs.findIndex((run) => run.blockNo > upTo)
      this.#recentCount -= kept === -1 ? runs.length : kept
      if (kept === -1) this.#recent.delete(agentNo)
      else if (kept > 0) this.#recent.set(agentNo, runs.slice(kept))
    }
  }

  #addBlock(blockNo: number, block: Buffer): void {
    const open = new Map<number, FoundRun>()
    for (let position = 0; position < blockCount(block); position++) {
      const { agentNo, seq, hlc, bodyBytes } = placedAt(block, position)
      let run = open.get(agentNo)
      if (run === undefined) {
        const strandBytes = seq === 0 ? 0 : (this.before(agentNo, seq - 1)?.strandBytes ?? 0)
        run = { firstSeq: seq, blockNo, ...hlc, strandBytes, places: [] }
        open.set(agentNo, run)
        this.add(agentNo, run)
      }
      addPlace(run, position)
      run.strandBytes += bodyBytes
    }
  }

  #tableBefore(agentNo: number, seq: number): FoundRun | undefined {
    for (const { key, value } of this.#tables.strands.getRange({
      start: runKey(agentNo, seq),
      end: runKey(agentNo, 0),
      reverse: true,
      inclusiveEnd: true,
      limit: 1,
    })) {
      return foundRun(key, value)
    }
    return undefined
  }
}

/** The runs of the table and those in memory, in one order; a run that both have comes once. */
function* merged(
  rows: Iterable<{ key: Buffer; value: Buffer }>,
  recent: readonly FoundRun[],
  order: (left: number, right: number) => number,
): Generator<FoundRun> {
  let next = 0
  for (const { key, value } of rows) {
    const kept = foundRun(key, value)
    for (; next < recent.length; next++) {
      const run = recent[next]
      if (run === undefined || order(run.firstSeq, kept.firstSeq) >= 0) break
      yield run
    }
    if (recent[next]?.firstSeq === kept.firstSeq) next++
    yield kept
  }
  yield* recent.slice(next)
}

/** The block up to which the table has the runs; -1 when it has none. */
export function runsCoveredUpTo({ meta }: Pick<RunTables, 'meta'>): number {
  return meta.get(runsCoveredKey)?.readUIntBE(0, 6) ?? -1
}

/** Adds the record at `position` of its block to a run, after all others. */
export function addPlace({ places }: StrandRun, position: number): void {
  const first = places[places.length - 2] ?? 0
  const count = places[places.length - 1] ?? 0
  if (places.length > 0 && first + count === position) places[places.length - 1] = count + 1
  else places.push(position, 1)
}

/** The last of the runs that begins at or before `seq`. */
function lastBefore(runs: readonly FoundRun[], seq: number): FoundRun | undefined {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((runs[middle]?.firstSeq ?? seqMax) <= seq) low = middle + 1
    else high = middle
  }
  return runs[low - 1]
}

function foundRun(key: Buffer, value: Buffer): FoundRun {
  return { firstSeq: key.readUIntBE(4, 6), ...decodeRun(value) }
}
