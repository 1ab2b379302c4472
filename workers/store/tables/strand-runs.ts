import { assert } from '../../../src/base/assert.js'
import type { CheckedTable, Table } from './checked-table.js'
import { blockCount, recordInfoAt } from './record-codec.js'
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

/**
 * With this many runs in memory, or runs of so many records, `StrandRuns` starts to move them into the table;
 * twice as many may wait. A thread that opens the store reads the blocks of all runs that are not in the table.
 */
const RECENT_RUNS_MAX = 16_384
const RECENT_RECORDS_MAX = 32_768

/**
 * A step writes at least this many runs into the table, and as many as were added since the last step, so that
 * a move ends before as many runs again are in memory. More would make a flush longer.
 */
const STEP_RUNS_MIN = 64

/** The key of the row of `meta` with the number of the last block whose runs are in the table. */
export const runsCoveredKey = Buffer.from('runs-covered-up-to')

/** The tables in which runs are stored, and from which they are rebuilt. */
export interface RunTables {
  blocks: Table
  strands: CheckedTable
  meta: CheckedTable
}

/**
 * Runs of the blocks up to `upTo` that are being moved into the table; the first `written` of them are there.
 */
interface RunMove {
  runs: [agentNo: number, run: FoundRun][]
  written: number
  upTo: number
}

/**
 * The runs of each strand, which locate its records: older ones in the table `strands`, the newest in memory.
 *
 * If each commit put its runs into the table, LMDB would copy and write a page for each agent of the group,
 * which costs more than the rest of a small write. Runs can be rebuilt from the blocks, so they are held in
 * memory until there are many, and then moved into the table in the order of its keys, a part with each
 * commit. Opening the store rebuilds the runs that are not in the table (docs/adr/0002-storage-layout.md).
 */
export class StrandRuns {
  readonly #tables: RunTables
  /** Runs that the table may not have, by agent number, in order. */
  readonly #recent = new Map<number, FoundRun[]>()
  #recentCount = 0
  #recentRecords = 0
  /**
   * Runs of the blocks up to this one are in `#recent` or in the table; undefined before the first read of
   * the store.
   */
  #seenUpTo: number | undefined
  #coveredUpTo = -1
  #moving: RunMove | undefined
  #addedSinceStep = 0
  readonly #recentMax: number
  readonly #stepMin: number

  /** @param sizes smaller in tests */
  constructor(tables: RunTables, sizes: { recentMax?: number; stepMin?: number } = {}) {
    this.#tables = tables
    this.#recentMax = sizes.recentMax ?? RECENT_RUNS_MAX
    this.#stepMin = sizes.stepMin ?? STEP_RUNS_MIN
  }

  /** The first block whose runs are only in memory. */
  get firstInMemory(): number {
    return this.#coveredUpTo + 1
  }

  /**
   * Reads the runs of new blocks, which another thread may have written.
   * @param blocksMax the maximum number of blocks
   * @returns whether there may be more blocks
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

  /** Adds a run of the newest block, with all its records. */
  add(agentNo: number, run: FoundRun): void {
    const runs = this.#recent.get(agentNo)
    if (runs === undefined) this.#recent.set(agentNo, [run])
    else runs.push(run)
    this.#recentCount += 1
    this.#recentRecords += runLength(run)
    this.#addedSinceStep += 1
    this.#seenUpTo = run.blockNo
  }

  /**
   * Puts a run of an imported block into the table, within the caller's transaction, because runs of imported
   * blocks are not rebuilt. So the table can have a run although it lacks earlier ones.
   */
  putImported(agentNo: number, run: FoundRun): void {
    this.#tables.strands.put(runKey(agentNo, run.firstSeq), encodeRun(run))
  }

  /** The run of an agent that contains `seq`, or the last one before it. */
  before(agentNo: number, seq: number): FoundRun | undefined {
    if (this.#seenUpTo === undefined) this.catchUp()
    const recent = lastBefore(this.#recent.get(agentNo) ?? [], seq)
    if (recent !== undefined && seq < recent.firstSeq + runLength(recent)) return recent
    const stored = this.#tableBefore(agentNo, seq)
    return recent === undefined || (stored !== undefined && stored.firstSeq > recent.firstSeq)
      ? stored
      : recent
  }

  /** The runs of an agent from the one that contains `seq`, up or down. */
  *from(agentNo: number, seq: number, order: 'asc' | 'desc'): Generator<FoundRun> {
    const first = this.before(agentNo, seq)?.firstSeq ?? seq
    const start = runKey(agentNo, first)
    const recent = this.#recent.get(agentNo) ?? []
    const { strands } = this.#tables
    if (order === 'asc') {
      const rows = strands.getRange({ start, end: runKey(agentNo + 1, 0) })
      yield* merged(rows, recent, { next: countUpTo(recent, first - 1), step: 1 })
    } else {
      const rows = strands.getRange({ start, end: runKey(agentNo, 0), reverse: true, inclusiveEnd: true })
      yield* merged(rows, recent, { next: countUpTo(recent, first) - 1, step: -1 })
    }
  }

  /**
   * Does the runs' part of a commit, within its transaction: once there are many in memory, moves some into
   * the table.
   */
  commitStep(): void {
    const added = this.#addedSinceStep
    this.#addedSinceStep = 0
    const full = this.#recentCount >= this.#recentMax || this.#recentRecords >= RECENT_RECORDS_MAX
    const move = this.#moving ?? (full ? this.#startMove() : undefined)
    if (move === undefined) return
    this.#writeRuns(move, Math.max(this.#stepMin, added))
  }

  /** Moves all runs into the table, within the caller's transaction. */
  flush(): void {
    if (this.#moving !== undefined) this.#writeRuns(this.#moving, Infinity)
    if (this.#recentCount > 0) this.#writeRuns(this.#startMove(), Infinity)
  }

  #writeRuns(move: RunMove, runsMax: number): void {
    const end = Math.min(move.runs.length, move.written + runsMax)
    for (; move.written < end; move.written++) {
      const [agentNo, run] = move.runs[move.written] ?? []
      assert(agentNo !== undefined && run !== undefined, 'the index is within the runs')
      this.#tables.strands.put(runKey(agentNo, run.firstSeq), encodeRun(run))
    }
    if (move.written < move.runs.length) return
    this.#tables.meta.put(runsCoveredKey, blockKey(move.upTo))
    this.#drop(move.upTo)
    this.#moving = undefined
  }

  /** Starts to move the runs in memory into the table, in the order of its keys. */
  #startMove(): RunMove {
    const agents = [...this.#recent.keys()].sort((one, other) => one - other)
    const runs: [number, FoundRun][] = []
    for (const agentNo of agents) {
      for (const run of this.#recent.get(agentNo) ?? []) runs.push([agentNo, run])
    }
    assert(this.#seenUpTo !== undefined, 'runs in memory are of blocks')
    this.#moving = { runs, written: 0, upTo: this.#seenUpTo }
    return this.#moving
  }

  /** Drops the runs of blocks up to `upTo` from memory, because the table has them. */
  #drop(upTo: number): void {
    this.#coveredUpTo = upTo
    for (const [agentNo, runs] of this.#recent) {
      const found = runs.findIndex((run) => run.blockNo > upTo)
      const dropped = found === -1 ? runs : runs.slice(0, found)
      this.#recentCount -= dropped.length
      this.#recentRecords -= dropped.reduce((sum, run) => sum + runLength(run), 0)
      if (found === -1) this.#recent.delete(agentNo)
      else if (found > 0) this.#recent.set(agentNo, runs.slice(found))
    }
  }

  #addBlock(blockNo: number, block: Buffer): void {
    const open = new Map<number, FoundRun>()
    for (let position = 0; position < blockCount(block); position++) {
      const { agentNo, seq, hlc, bodyBytes } = recordInfoAt(block, position)
      let run = open.get(agentNo)
      if (run === undefined) {
        const strandBytes = seq === 0 ? 0 : (this.before(agentNo, seq - 1)?.strandBytes ?? 0)
        run = { firstSeq: seq, blockNo, ...hlc, strandBytes, positionRanges: [] }
        open.set(agentNo, run)
      }
      addPosition(run, position)
      run.strandBytes += bodyBytes
    }
    for (const [agentNo, run] of open) this.add(agentNo, run)
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

/**
 * Merges the runs of the table and those in memory, of which it takes every one from `next` in steps of
 * `step`, as the rows go. A run in both is yielded once.
 */
function* merged(
  rows: Iterable<{ key: Buffer; value: Buffer }>,
  recent: readonly FoundRun[],
  { next, step }: { next: number; step: 1 | -1 },
): Generator<FoundRun> {
  for (const { key, value } of rows) {
    const stored = foundRun(key, value)
    for (let run = recent[next]; run !== undefined; run = recent[(next += step)]) {
      if (step * (run.firstSeq - stored.firstSeq) >= 0) break
      yield run
    }
    if (recent[next]?.firstSeq === stored.firstSeq) next += step
    yield stored
  }
  for (let run = recent[next]; run !== undefined; run = recent[(next += step)]) yield run
}

/** The last block whose runs are in the table; -1 if there is none. */
export function runsCoveredUpTo({ meta }: Pick<RunTables, 'meta'>): number {
  return meta.get(runsCoveredKey)?.readUIntBE(0, 6) ?? -1
}

/** Adds the record at `position` of the block to the end of a run. */
export function addPosition({ positionRanges: ranges }: StrandRun, position: number): void {
  const first = ranges[ranges.length - 2] ?? 0
  const count = ranges[ranges.length - 1] ?? 0
  if (ranges.length > 0 && first + count === position) ranges[ranges.length - 1] = count + 1
  else ranges.push(position, 1)
}

/** The last run that begins at or before `seq`. */
function lastBefore(runs: readonly FoundRun[], seq: number): FoundRun | undefined {
  return runs[countUpTo(runs, seq) - 1]
}

/** How many runs begin at or before `seq`. */
function countUpTo(runs: readonly FoundRun[], seq: number): number {
  let low = 0
  let high = runs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((runs[middle]?.firstSeq ?? seqMax) <= seq) low = middle + 1
    else high = middle
  }
  return low
}

function foundRun(key: Buffer, value: Buffer): FoundRun {
  return { firstSeq: key.readUIntBE(4, 6), ...decodeRun(value) }
}
