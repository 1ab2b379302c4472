import { compareHlc, zeroHlc } from '../../src/strand/hlc.js'
import { bodyCommitment } from '../../src/strand/hash.js'
import { zeroHash } from '../../src/strand/header.js'
import { rowCount, type Environment } from '../store/environment.js'
import { HashIndex, prefixOf } from '../store/hash-index/hash-index.js'
import { RecordCheck } from '../store/log/record-check.js'
import { rowFinder } from '../store/row-mover.js'
import { agentRowOf } from '../store/tables/agent.js'
import { erasedCommitment } from '../store/tables/erasures.js'
import { blockCount, placedAt, recordAt, type StoredRecord } from '../store/tables/record-codec.js'
import { recordBySeq, strandEnd } from '../store/tables/records.js'
import { addPlace, runsCoveredUpTo } from '../store/tables/strand-runs.js'
import { encodeRun, isImportedBlock, packLocation, runKey, type FoundRun } from '../store/tables/tables.js'

const HASH_BYTES = 32

/**
 * Checks each strand of a shard, in the order in which its records lie: every record's hash is made again from what is
 * stored, and it names the record before it in seq; clocks of the log do not go back; runs and index lead to each
 * block. Memory grows with the agents, 60 bytes each, and not with the records.
 * @param onRecord called once a record
 * @throws Error that names what does not hold
 */
export function checkStrands(
  environment: Environment,
  { agents, onRecord }: { agents: number; onRecord: () => void },
): void {
  checkAgents(environment, agents)
  const check = new StrandCheck(environment, agents)
  for (const blocks of [environment.blocks, environment.importedBlocks]) {
    for (const { key, value } of blocks.getRange({})) check.block(key.readUIntBE(0, 6), value, onRecord)
  }
  check.end()
}

/** Each agent has a number, without gaps, and a row. */
function checkAgents(environment: Environment, agents: number): void {
  let no = 0
  for (const { key, value } of environment.names.getRange({})) {
    must(key.readUInt32BE(0) === no, `agent numbers have no gaps, at ${no}`)
    const row = environment.agents.get(value)
    must(row !== undefined && agentRowOf(row).no === no, `the row of agent number ${no} has that number`)
    no++
  }
  must(no === agents && rowCount(environment.agents) === agents, `there are ${agents} agents`)
}

class StrandCheck {
  readonly #environment: Environment
  readonly #index: HashIndex
  readonly #hashes: RecordCheck
  readonly #runsCovered: number
  readonly #agents: number
  /** Of each strand, of the record that came last: its hash, the seq behind it, and body bytes up to it. */
  readonly #lastHashes: Buffer
  readonly #nextSeqs: Float64Array
  readonly #bytes: Float64Array
  /** How many records of each strand came. */
  readonly #counts: Float64Array
  #lastHlc = zeroHlc

  constructor(environment: Environment, agents: number) {
    this.#environment = environment
    this.#index = HashIndex.open(environment.hashes)
    this.#hashes = new RecordCheck(rowFinder(environment))
    this.#runsCovered = runsCoveredUpTo(environment)
    this.#agents = agents
    this.#lastHashes = Buffer.alloc(agents * HASH_BYTES)
    this.#nextSeqs = new Float64Array(agents)
    this.#bytes = new Float64Array(agents)
    this.#counts = new Float64Array(agents)
  }

  block(blockNo: number, block: Buffer, onRecord: () => void): void {
    this.#hashes.segment([])
    const runs = new Map<number, FoundRun>()
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      const record = recordAt(block, position)
      const { agentNo, seq, hlc } = record
      const fault = this.#faultOf(record, isImportedBlock(blockNo))
      if (fault !== undefined) throw new Error(`Record ${seq} of agent number ${agentNo} ${fault}`)
      const strandBytes = this.#take(record, placedAt(block, position).bodyBytes)
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
      const end = strandEnd(this.#environment, no)
      if (end === undefined || this.#counts[no] !== end.record.seq + 1)
        throw new Error(`Expected each record of agent number ${no} once`)
    }
  }

  /** What is wrong with a record. */
  #faultOf(record: StoredRecord, imported: boolean): string | undefined {
    const { agentNo, prev, hlc } = record
    if (agentNo >= this.#agents) return 'has no agent'
    const before = this.#hashBefore(record)
    if (before === undefined) return 'does not follow the one before it'
    if (prev !== before) return 'does not name the one before it'
    const isErased = record.erased === true
    const commitment = isErased
      ? erasedCommitment(this.#environment, record)
      : bodyCommitment(record.salt, record.body)
    const fault = this.#hashes.faultOf(record, commitment)
    if (fault !== undefined || imported) return fault
    if (compareHlc(hlc, this.#lastHlc) < 0) return 'is out of the order of clocks'
    this.#lastHlc = hlc
    return undefined
  }

  /** The hash of the record before this one: the one that came last, except where a piece of the strand begins. */
  #hashBefore({ agentNo, seq }: StoredRecord): string | undefined {
    if (seq === 0) return zeroHash
    if (seq !== this.#nextSeqs[agentNo]) return recordBySeq(this.#environment, agentNo, seq - 1)?.hash
    return this.#lastHashes.toString('hex', agentNo * HASH_BYTES, (agentNo + 1) * HASH_BYTES)
  }

  /** Takes the next record. @returns body bytes of its strand up to it */
  #take({ agentNo, seq, hash }: StoredRecord, bodyBytes: number): number {
    const strandBytes = this.#bytesBefore(agentNo, seq) + bodyBytes
    this.#lastHashes.write(hash, agentNo * HASH_BYTES, 'hex')
    this.#nextSeqs[agentNo] = seq + 1
    this.#bytes[agentNo] = strandBytes
    this.#counts[agentNo] = (this.#counts[agentNo] ?? 0) + 1
    return strandBytes
  }

  #bytesBefore(agentNo: number, seq: number): number {
    if (seq === 0) return 0
    if (seq === this.#nextSeqs[agentNo]) return this.#bytes[agentNo] ?? 0
    // Where a piece of the strand begins, the run before it says.
    return this.#environment.runs.before(agentNo, seq - 1)?.strandBytes ?? 0
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
