import { assert } from '../../src/base/assert.js'
import { limits } from '../../src/base/limits/limits.js'
import { compareHlc, laterHlc, type Hlc } from '../../src/strand/hlc.js'
import type { WriteSet, ImportedRecord, PendingRecord } from './write-set.js'
import { AgentTable } from './tables/agents.js'
import type { Agent } from './tables/agent.js'
import type { Environment } from './environment.js'
import { HashIndex, prefixOf, prefixRange } from './hash-index/hash-index.js'
import {
  blockBytes,
  blockCount,
  blockOverhead,
  blockRecordsMax,
  encodeBlock,
  recordAt,
  recordBytes,
  type StoredRecord,
} from './tables/record-codec.js'
import { putClockFloor, readClockFloor } from './tables/meta.js'
import { flushBytesMax, groupBytesMax, type SpaceNeed } from './preallocation.js'
import { erasures, putCommitment } from './tables/erasures.js'
import { type OpenLog, ShardLog } from './log/shard-log.js'
import { blockTable, readBlock, recordAtLocation } from './tables/records.js'
import { type BackgroundIndex, OpenedTables } from './table-spec.js'
import { tableSpecs } from './table-specs.js'
import { Scrubber } from './scrubber.js'
import { SetAside } from './set-aside.js'
import { addBlocks } from './tables/store-indexes.js'
import { addPosition } from './tables/strand-runs.js'
import { blockKey, importedBlocksFrom, packLocation, unpackLocation, type FoundRun } from './tables/tables.js'

/** Records that go into the hash index between two flushes, at most. */
export const flushRecordsMax = 16_384

type BlockRecord = PendingRecord | ImportedRecord

export interface StoreOptions {
  /** Agents that are kept in memory; the limit if absent. */
  openAgentsMax?: number | undefined
  /** Opens the log; files beside the store if absent. */
  openLog?: OpenLog | undefined
}

/** The store of one shard. All writes go through `commit`. */
export class ShardStore {
  readonly environment: Environment
  readonly agents: AgentTable
  /** All other tables, by their specs. */
  readonly tables: OpenedTables
  readonly setAside = new SetAside()
  /** The indexes of tables. */
  readonly #indexes: readonly BackgroundIndex[]
  readonly #hashes: HashIndex
  readonly #scrubber: Scrubber
  readonly #log: ShardLog
  /**
   * Since the last flush: index entries, the most bytes by which the rows can extend the data file, and the
   * time of the first.
   */
  #unflushed: { records: number; bytesMax: number; sinceMs: number | undefined } = nothingUnflushed()
  /** The disk was full at the last check, so background work waits. */
  #full = false
  /** The numbers of the next blocks, of the log and of imported records. */
  #nextBlockNo: number
  #nextImportedNo: number
  #lastHlc: Hlc

  constructor(path: string, masterSeed: Uint8Array, { openAgentsMax, openLog }: StoreOptions = {}) {
    this.#log = new ShardLog(path, openLog)
    this.environment = this.#log.environment
    this.agents = new AgentTable(this.environment, masterSeed, openAgentsMax)
    this.tables = new OpenedTables(this.environment, this.setAside)
    this.#indexes = tableSpecs.flatMap((spec) => spec.index(this.tables) ?? [])
    this.#hashes = HashIndex.open(this.environment.hashes)
    this.#scrubber = new Scrubber(this.environment)
    // The server may have been killed between the flush of an erasure and the wipe of the log.
    if (this.#scrubber.pending) this.#log.wipe()
    this.#nextBlockNo = 0
    this.#nextImportedNo = importedBlocksFrom
    this.#lastHlc = readClockFloor(this.environment)
    this.#replay()
  }

  /** The latest HLC of the shard, including imported records. The shard's clock starts after it. */
  get lastHlc(): Hlc {
    return this.#lastHlc
  }

  /** Whether an idle shard has work: merging the indexes, or scrubbing erased bodies. */
  get needsStep(): boolean {
    return !this.#full && (this.#needsMerge || this.#scrubber.ready)
  }

  /** Whether bytes of erased bodies wait to be overwritten. */
  get scrubs(): boolean {
    return !this.#full && this.#scrubber.ready
  }

  /** Whether the disk has space for a commit. Call it before a write is accepted. */
  hasSpace({ store, log }: SpaceNeed = { store: 0, log: 0 }): boolean {
    this.#full = !this.#log.preallocation.reserve(this.#flushBytesMax(store)) || !this.#log.reserve(log)
    return !this.#full
  }

  /** The most bytes by which the next flush can extend the data file, including a group of so many bytes. */
  #flushBytesMax(groupBytes: number): number {
    const { bytesMax } = this.#unflushed
    return Math.min(bytesMax + groupBytes, flushBytesMax(this.environment, this.#log.bytes + groupBytes))
  }

  /** The record with this hash on the agent's strand. */
  findRecord(agent: Agent, hash: string): StoredRecord | undefined {
    for (const location of this.#hashes.find(prefixOf(hash))) {
      const { blockNo, position } = unpackLocation(location)
      const record = recordAtLocation(this.environment, blockNo, position)
      if (record.hash === hash) return record.agentNo === agent.no ? record : undefined
    }
    return undefined
  }

  /** The records of all strands whose hash begins with `digits`: at least 8, so that there are few. */
  *recordsByDigits(digits: string): Generator<StoredRecord> {
    for (const location of this.#hashes.findBetween(...prefixRange(digits))) {
      const { blockNo, position } = unpackLocation(location)
      const record = recordAtLocation(this.environment, blockNo, position)
      if (record.hash.startsWith(digits)) yield record
    }
  }

  /**
   * Appends a group to the log, as one segment.
   *
   * Before: the group is sealed; each record continues its strand, and its clock is after `lastHlc` unless it
   * is imported; `hasSpace` was true for what it needs; no other group was decided by the state before it.
   *
   * When it returns: all reads of this store see the group whole, and `segments.written` is its number. It is
   * durable, and reads of a store that is opened again will see it, when `segments.durable` has reached that
   * number. Bodies that it erases are neither in the log nor in the tables, and the pages that held them are
   * being overwritten.
   *
   * Never: answer anyone who could know of the group before it is durable; commit it twice; use the store
   * after an error.
   * @throws Error if the append failed: the outcome is unknown and the shard must stop
   */
  commit(group: WriteSet, nowMs: number): void {
    const indexed = tableSpecs.reduce((sum, spec) => sum + spec.indexed(group.changes), 0)
    const records = group.records.length + group.imported.length + indexed
    if (this.#unflushed.records + records > flushRecordsMax) this.flush()
    const bytesMax = groupBytesMax(group)
    if (!this.#log.preallocation.reserve(this.#flushBytesMax(bytesMax)))
      throw new Error('The disk is too full for a commit')
    this.#put(group, nowMs)
    this.#unflushed.records += records
    this.#unflushed.bytesMax += bytesMax
    this.#log.append()
    if (group.changes.find(erasures) === undefined) return
    this.flush()
    this.#log.wipe()
    this.#scrubber.begin()
  }

  /** The numbers of the last appended segment, and of the last one that is known to be durable. */
  get segments(): { written: number; durable: number } {
    return { written: this.#log.written, durable: this.#log.durable }
  }

  /** Blocks until all groups are durable. @throws Error if that is unknown: the shard must stop */
  syncNow(): void {
    this.#log.syncNow()
  }

  /** Starts a sync, as `SegmentLog.syncSoon` does. */
  syncSoon(then: (error: Error | null) => void): void {
    this.#log.syncSoon(then)
  }

  /**
   * Whether a flush is due. Call it after each group, and at intervals.
   * @param patience `busy`: commands wait, so that limits may be exceeded twice; `unsynced`: the flush would
   * wait for the log
   */
  flushIsDue(steadyMs: number, { busy, unsynced }: { busy: boolean; unsynced: boolean }): boolean {
    if (this.#log.bytes === 0) return false
    const { records } = this.#unflushed
    this.#unflushed.sinceMs ??= steadyMs
    const patience = busy ? 2 : 1
    const ageMs = unsynced ? limits.flushAgeUnsyncedMs : limits.flushAgeMs
    const old = steadyMs - this.#unflushed.sinceMs >= patience * ageMs
    return old || records >= patience * limits.flushRecords || this.#log.bytes >= patience * limits.flushBytes
  }

  /**
   * Writes all rows to LMDB, so that other threads see them.
   * @throws Error if the flush failed: the shard must stop
   */
  flush(): void {
    if (this.#log.bytes > 0) this.#flush(() => this.#step())
  }

  /** Approximate bytes of the rows that are not flushed. */
  get memtableBytes(): number {
    return this.#log.bytes
  }

  /** The number of commits that were replayed from the log when the store was opened. */
  get replayed(): number {
    return this.#log.replayed
  }

  /** The number of the last segment of the log that LMDB has. */
  get flushedSegment(): number {
    return this.#log.flushedSegment
  }

  #flush(rest: () => void): void {
    this.#log.flush(rest)
    this.#unflushed = nothingUnflushed()
  }

  /** Does the indexes' part of a flush. */
  #step(): void {
    this.#hashes.commitStep()
    this.environment.runs.commitStep()
    this.environment.trees.step(this.setAside)
    for (const index of this.#indexes) index.step()
  }

  #put(group: WriteSet, nowMs: number): void {
    for (const [name, row] of group.newAgents) this.agents.put(name, row)
    for (const [name, change] of group.agentChanges) this.agents.change(name, change)
    this.#putRecords(group.records)
    this.#putImported(group.imported)
    for (const spec of tableSpecs) spec.put(this.tables, group.changes, nowMs)
  }

  /** Does a part of the background work. */
  step(): void {
    if (!this.hasSpace()) return
    if (this.#scrubber.ready) this.#scrubber.step()
    else this.#flush(() => this.#step())
  }

  get #needsMerge(): boolean {
    const { trees } = this.environment
    return this.#hashes.needsStep || trees.needsStep || this.#indexes.some((index) => index.needsStep)
  }

  /**
   * Closes the shard's log for this node, as `SegmentLog.transfer` does. Nothing may be written afterwards.
   */
  transfer(): void {
    this.#log.transfer()
  }

  /**
   * Writes the parts of the indexes that are only in memory, so that the next opening need not rebuild them,
   * and closes.
   */
  async close(): Promise<void> {
    if (this.hasSpace()) {
      this.#flush(() => {
        this.#hashes.flush()
        for (const index of this.#indexes) index.flush()
        this.environment.runs.flush()
      })
    }
    await this.#log.close()
  }

  /** Writes imported records in separate blocks. */
  #putImported(records: readonly ImportedRecord[]): void {
    if (records.length === 0) return
    this.#putRecords(records)
    for (const { agentNo, seq, commitment } of records) {
      if (commitment !== undefined) putCommitment(this.environment, { agentNo, seq }, commitment)
    }
    const latest = records.reduce((hlc, one) => (compareHlc(one.hlc, hlc) > 0 ? one.hlc : hlc), this.#lastHlc)
    if (latest === this.#lastHlc) return
    this.#lastHlc = latest
    putClockFloor(this.environment, latest)
  }

  #putRecords(records: readonly BlockRecord[]): void {
    let from = 0
    while (from < records.length) {
      let to = from
      let bytes = 0
      while (to < records.length && to - from < blockRecordsMax) {
        const record = records[to]
        assert(record !== undefined, 'the index is within the group')
        const more = recordBytes(record)
        if (to > from && blockOverhead(to - from + 1) + bytes + more > blockBytes) break
        bytes += more
        to++
      }
      this.#putBlock(records.slice(from, to))
      from = to
    }
  }

  #putBlock(records: readonly BlockRecord[]): void {
    const [first] = records
    const imported = first !== undefined && 'imported' in first
    const blockNo = imported ? this.#nextImportedNo++ : this.#nextBlockNo++
    // Appending splits no page, so no copy of a body remains in the old half (docs/adr/0015-erasure.md).
    const table = blockTable(this.environment, blockNo)
    const block = encodeBlock(records)
    const put: unknown = table.putSync(blockKey(blockNo), block, { append: true })
    assert(put === true, 'a new block comes after all others')
    this.environment.trees.add(blockNo, block)
    const runs = new Map<number, FoundRun>()
    for (let position = 0; position < records.length; position++) {
      const record = records[position]
      assert(record !== undefined, 'the position is within the block')
      this.#hashes.add(prefixOf(record.hash), packLocation(blockNo, position))
      if (!imported) this.#lastHlc = record.hlc
      let run = runs.get(record.agentNo)
      if (run === undefined) {
        run = { firstSeq: record.seq, blockNo, ...record.hlc, strandBytes: 0, positionRanges: [] }
        runs.set(record.agentNo, run)
      }
      addPosition(run, position)
      run.strandBytes = record.strandBytes
    }
    for (const [agentNo, run] of runs) {
      if (imported) this.environment.runs.putImported(agentNo, run)
      else this.environment.runs.add(agentNo, run)
    }
  }

  /**
   * Adds blocks to the hash index and the strand runs, whose newest parts were only in memory. Only these
   * blocks show where strands end, so none of them may be damaged.
   */
  #replay(): void {
    const { runs, blocks, importedBlocks } = this.environment
    runs.catchUp()
    const { coveredUpTo, importedUpTo } = this.#hashes
    addBlocks(this.#hashes, blocks, { covered: coveredUpTo, checkedFrom: runs.firstInMemory })
    addBlocks(this.#hashes, importedBlocks, { covered: importedUpTo, checkedFrom: Infinity })
    for (const key of blocks.getKeys({ reverse: true, limit: 1 })) {
      const blockNo = key.readUIntBE(0, 6)
      const block = Buffer.from(readBlock(this.environment, blockNo))
      this.#nextBlockNo = blockNo + 1
      this.#lastHlc = laterHlc(this.#lastHlc, recordAt(block, blockCount(block) - 1).hlc)
    }
    for (const key of importedBlocks.getKeys({ reverse: true, limit: 1 })) {
      this.#nextImportedNo = key.readUIntBE(0, 6) + 1
    }
  }
}

function nothingUnflushed(): { records: number; bytesMax: number; sinceMs: number | undefined } {
  return { records: 0, bytesMax: 0, sinceMs: undefined }
}
