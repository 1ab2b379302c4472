import { assert } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import { commitDurably, type Environment } from '../store/environment.js'
import { HashIndex, prefixOf } from '../store/hash-index/hash-index.js'
import {
  blockBytes,
  blockOf,
  blockOverhead,
  blockRecordsMax,
  writeRenumbered,
  type RawRecord,
} from '../store/tables/record-codec.js'
import { blockTable } from '../store/tables/records.js'
import { flushRecordsMax } from '../store/shard-store.js'
import { addPlace } from '../store/tables/strand-runs.js'
import {
  blockKey,
  importedBlocksFrom,
  isImportedBlock,
  packLocation,
  runLength,
  type FoundRun,
} from '../store/tables/tables.js'

/** A block that is full and not written yet. */
interface FullBlock {
  blockNo: number
  value: Buffer
  /** By agent number. */
  runs: Map<number, FoundRun>
  /** The prefixes of the records' hashes, for the index. */
  prefixes: number[]
}

/** Writes the blocks of a new shard, with the runs of its strands and the index of its hashes, many in one transaction. */
export class LogWriter {
  readonly #environment: Environment
  readonly #hashes: HashIndex
  #blockNo = 0
  #runs = new Map<number, FoundRun>()
  /** The records of the block that is being filled, and where each ends. */
  #bytes = Buffer.alloc(blockBytes)
  #ends: number[] = []
  #prefixes: number[] = []
  #group: FullBlock[] = []
  #groupBytes = 0
  #groupRecords = 0

  constructor(environment: Environment) {
    this.#environment = environment
    this.#hashes = HashIndex.open(environment.hashes)
  }

  /** Appends a record of the agent that has the number `agentNo` here. @param strandBytes body bytes of its strand so far */
  append(record: RawRecord, { agentNo, strandBytes }: { agentNo: number; strandBytes: number }): void {
    const at = this.#ends.at(-1) ?? 0
    const count = this.#ends.length
    const bytes = blockOverhead(count + 1) + at + record.bytes.length
    const open = this.#runs.get(agentNo)
    // A run has no gaps, but between records of the log there can be imported ones, which lie elsewhere.
    const apart = open !== undefined && record.seq !== open.firstSeq + runLength(open)
    if (count > 0 && (bytes > blockBytes || count >= blockRecordsMax || apart)) {
      this.#endBlock()
      this.append(record, { agentNo, strandBytes })
      return
    }
    this.#makeRoom(at + record.bytes.length)
    this.#ends.push(writeRenumbered(record, agentNo, { target: this.#bytes, at }))
    this.#prefixes.push(prefixOf(record.hash))
    let run = this.#runs.get(agentNo)
    if (run === undefined) {
      const { ms, counter } = record.hlc
      run = { firstSeq: record.seq, blockNo: this.#blockNo, ms, counter, strandBytes, places: [] }
      this.#runs.set(agentNo, run)
    }
    addPlace(run, count)
    run.strandBytes = strandBytes
  }

  /** Records that are appended after this call were imported. */
  beginImported(): void {
    this.#endBlock()
    this.#blockNo = importedBlocksFrom
  }

  /** Writes everything to disk, and merges the hash index as an idle shard would. */
  finish(): void {
    this.#endBlock()
    this.#commit()
    while (this.#hashes.needsStep) commitDurably(this.#environment, () => this.#hashes.commitStep())
  }

  #makeRoom(bytes: number): void {
    if (bytes <= this.#bytes.length) return
    const larger = Buffer.alloc(bytes)
    this.#bytes.copy(larger)
    this.#bytes = larger
  }

  /** Closes the block that is being filled. */
  #endBlock(): void {
    const end = this.#ends.at(-1)
    if (end !== undefined) {
      const value = blockOf(this.#bytes.subarray(0, end), this.#ends)
      this.#group.push({ blockNo: this.#blockNo, value, runs: this.#runs, prefixes: this.#prefixes })
      this.#groupBytes += value.length
      this.#groupRecords += this.#ends.length
    }
    if (end !== undefined) this.#blockNo += 1
    this.#runs = new Map()
    this.#ends = []
    this.#prefixes = []
    const full = this.#groupRecords >= limits.reshardGroupRows || this.#groupBytes >= limits.reshardGroupBytes
    if (full) this.#commit()
  }

  #commit(): void {
    if (this.#group.length === 0) return
    commitDurably(this.#environment, () => {
      let added = 0
      for (const block of this.#group) {
        if (added + block.prefixes.length > flushRecordsMax / 2) {
          this.#hashes.commitStep()
          added = 0
        }
        this.#putBlock(block)
        added += block.prefixes.length
      }
      this.#hashes.commitStep()
      this.#environment.runs.commitStep()
    })
    this.#group = []
    this.#groupBytes = 0
    this.#groupRecords = 0
  }

  #putBlock({ blockNo, value, runs, prefixes }: FullBlock): void {
    const { runs: strandRuns } = this.#environment
    const table = blockTable(this.#environment, blockNo)
    const put: unknown = table.putSync(blockKey(blockNo), value, { append: true })
    assert(put === true, 'a new block comes behind all others')
    for (const [position, prefix] of prefixes.entries()) {
      this.#hashes.add(prefix, packLocation(blockNo, position))
    }
    for (const [agentNo, run] of runs) {
      if (isImportedBlock(blockNo)) strandRuns.putImported(agentNo, run)
      else strandRuns.add(agentNo, run)
    }
  }
}
