import { assert } from '../../src/base/assert.js'
import { compareHlc, formatHlc, zeroHlc } from '../../src/strand/hlc.js'
import { bodyCommitment, recordHash } from '../../src/strand/hash.js'
import { headerText, zeroHash } from '../../src/strand/header.js'
import { agentRowOf } from '../store/tables/agent.js'
import type { Environment } from '../store/environment.js'
import { erasedCommitment } from '../store/tables/erasures.js'
import { HashIndex, prefixOf } from '../store/hash-index/hash-index.js'
import { blockCount, placedAt, recordAt, type StoredRecord } from '../store/tables/record-codec.js'
import { recordBySeq } from '../store/tables/records.js'
import { addPlace, runsCoveredUpTo } from '../store/tables/strand-runs.js'
import { encodeRun, isImportedBlock, packLocation, runKey, type FoundRun } from '../store/tables/tables.js'
import { StrandSizes } from './strand-sizes.js'

const HASH_BYTES = 32

/** Where the strands of a shard end, by agent number. */
export interface StrandHeads {
  hash(agentNo: number): string
  seq(agentNo: number): number
  strandBytes(agentNo: number): number
}

/**
 * Checks each strand of a shard, in the order in which its records lie: every record's hash is made again from what is
 * stored, and it names the record before it in seq; clocks of the log do not go back; runs and index lead to each
 * block. Memory grows with the agents, 170 bytes each, and not with the records.
 * @param onRecord called once a record
 * @throws Error that names what does not hold
 */
export function checkStrands(
  environment: Environment,
  { agents, onRecord }: { agents: number; onRecord: () => void },
): StrandHeads {
  const check = new StrandCheck(environment, agents)
  for (const blocks of [environment.blocks, environment.importedBlocks]) {
    for (const { key, value } of blocks.getRange({})) {
      check.block(key.readUIntBE(0, 6), Buffer.from(value), onRecord)
    }
  }
  check.end()
  return check
}

/** Digests of one kind, one after another in one piece of memory. */
class Digests {
  readonly #bytes: Buffer

  constructor(count: number) {
    this.#bytes = Buffer.alloc(count * HASH_BYTES)
  }

  get(index: number): string {
    return this.#bytes.toString('hex', index * HASH_BYTES, (index + 1) * HASH_BYTES)
  }

  set(index: number, hex: string): void {
    this.#bytes.write(hex, index * HASH_BYTES, 'hex')
  }
}

class StrandCheck implements StrandHeads {
  readonly #environment: Environment
  readonly #index: HashIndex
  readonly #agents: number
  readonly #runsCovered: number
  readonly #strands: Digests
  readonly #keys: Digests
  /** All keys of agents whose key was rotated. */
  readonly #allKeys = new Map<number, string[]>()
  readonly #heads: Digests
  /** The hash of the last record so far of each strand. */
  readonly #latest: Digests
  /** How many records of each strand came so far, and the greatest seq among them. */
  readonly #counts: Float64Array
  readonly #lastSeqs: Float64Array
  readonly #bytes: Float64Array
  readonly #sizes: StrandSizes
  #lastHlc = zeroHlc

  constructor(environment: Environment, agents: number) {
    this.#environment = environment
    this.#index = HashIndex.open(environment.hashes)
    this.#agents = agents
    this.#runsCovered = runsCoveredUpTo(environment)
    this.#strands = new Digests(agents)
    this.#keys = new Digests(agents)
    this.#heads = new Digests(agents)
    this.#latest = new Digests(agents)
    this.#counts = new Float64Array(agents)
    this.#lastSeqs = new Float64Array(agents).fill(-1)
    this.#sizes = new StrandSizes(environment)
    this.#bytes = new Float64Array(agents)
    this.#readAgents()
  }

  hash(agentNo: number): string {
    return this.#heads.get(agentNo)
  }

  seq(agentNo: number): number {
    return this.#lastSeqs[agentNo] ?? -1
  }

  strandBytes(agentNo: number): number {
    return this.#bytes[agentNo] ?? 0
  }

  block(blockNo: number, block: Buffer, onRecord: () => void): void {
    const runs = new Map<number, FoundRun>()
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      const record = recordAt(block, position)
      const { agentNo, seq, hlc } = record
      const fault = this.#faultOf(record, isImportedBlock(blockNo))
      if (fault !== undefined) throw new Error(`Record ${seq} of agent number ${agentNo} ${fault}`)
      const { bodyBytes } = placedAt(block, position)
      const strandBytes = this.#sizes.add({ no: agentNo, seq, bodyBytes })
      this.#bytes[agentNo] = (this.#bytes[agentNo] ?? 0) + bodyBytes
      let run = runs.get(agentNo)
      if (run === undefined) {
        run = { firstSeq: seq, blockNo, ms: hlc.ms, counter: hlc.counter, strandBytes, places: [] }
        runs.set(agentNo, run)
      }
      addPlace(run, position)
      run.strandBytes = strandBytes
      if (position === 0) this.#findable(record, packLocation(blockNo, position))
      onRecord()
    }
    // Runs of later blocks are made from the blocks when the store opens.
    if (blockNo > this.#runsCovered && !isImportedBlock(blockNo)) return
    for (const [agentNo, run] of runs) {
      const kept = this.#environment.strands.get(runKey(agentNo, run.firstSeq))
      const leads = kept !== undefined && encodeRun(run).equals(kept)
      if (!leads) throw new Error(`Expected each run of block ${blockNo} to lead there`)
    }
  }

  end(): void {
    for (let no = 0; no < this.#agents; no++) {
      const records = this.#counts[no] ?? 0
      if (records === 0 || records !== this.seq(no) + 1)
        throw new Error(`Expected each record of agent number ${no} once`)
    }
  }

  #readAgents(): void {
    let no = 0
    for (const { key, value } of this.#environment.names.getRange({})) {
      must(key.readUInt32BE(0) === no, `agent numbers have no gaps, at ${no}`)
      const bytes = this.#environment.agents.get(Buffer.from(value))
      assert(bytes !== undefined, 'an agent that has a number has a row')
      const row = agentRowOf(bytes)
      must(row.no === no, `the row of agent number ${no} has that number`)
      this.#strands.set(no, row.strand)
      this.#keys.set(no, row.publicKey)
      const retired = row.retiredKeys ?? []
      if (retired.length > 0) {
        this.#allKeys.set(no, [...retired.map(({ publicKey }) => publicKey), row.publicKey])
      }
      no++
    }
    must(no === this.#agents, `there are ${this.#agents} agents`)
  }

  /** What is wrong with a record; if nothing is, it is its strand's head from here on. */
  #faultOf(record: StoredRecord, imported: boolean): string | undefined {
    const { agentNo, seq, hash, prev, hlc } = record
    if (agentNo >= this.#agents) return 'has no agent'
    const before = this.#hashBefore(record)
    if (before === undefined) return 'does not follow the one before it'
    if (prev !== before) return 'does not name the one before it'
    if (seq === 0 && hash !== this.#strands.get(agentNo)) return 'is not the one that its agent began with'
    if (hash !== this.#hashOf(record)) return 'does not have the hash of its header'
    this.#latest.set(agentNo, hash)
    this.#counts[agentNo] = (this.#counts[agentNo] ?? 0) + 1
    if (seq > this.seq(agentNo)) {
      this.#lastSeqs[agentNo] = seq
      this.#heads.set(agentNo, hash)
    }
    if (imported) return undefined
    if (compareHlc(hlc, this.#lastHlc) < 0) return 'is out of the order of clocks'
    this.#lastHlc = hlc
    return undefined
  }

  /** The hash of the record before this one: the one that came last, except where a piece of the strand begins. */
  #hashBefore({ agentNo, seq }: StoredRecord): string | undefined {
    if (seq === 0) return zeroHash
    if (seq === this.#sizes.nextSeq(agentNo)) return this.#latest.get(agentNo)
    return recordBySeq(this.#environment, agentNo, seq - 1)?.hash
  }

  /** The hash of a record, computed again; undefined if its agent never had the key. */
  #hashOf(record: StoredRecord): string | undefined {
    const { agentNo, seq, keyIndex } = record
    const keys = this.#allKeys.get(agentNo)
    const key = keys === undefined ? this.#keys.get(agentNo) : keys[keyIndex]
    if (key === undefined || (keys === undefined && keyIndex > 0)) return undefined
    const body =
      record.erased === true
        ? erasedCommitment(this.#environment, record)
        : bodyCommitment(record.salt, record.body)
    return recordHash(
      headerText({
        strand: seq === 0 ? zeroHash : this.#strands.get(agentNo),
        key,
        seq,
        prev: record.prev,
        hlc: formatHlc(record.hlc),
        type: record.type,
        body,
      }),
    )
  }

  /** What the index has not written yet is added to it again when the store opens. */
  #findable({ hash }: StoredRecord, location: number): void {
    if (!this.#index.covers(location)) return
    must(this.#index.find(prefixOf(hash)).includes(location), `the record ${hash} is found by its hash`)
  }
}

function must(condition: boolean, holds: string): asserts condition {
  if (!condition) throw new Error(`Expected that ${holds}`)
}
