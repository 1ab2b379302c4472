import { compareHlc, zeroHlc } from '../../src/strand/hlc.js'
import { bodyCommitment } from '../../src/strand/hash.js'
import { zeroHash } from '../../src/strand/header.js'
import { rowCount, type Environment } from '../store/environment.js'
import { HashIndex, prefixOf } from '../store/hash-index/hash-index.js'
import { RecordCheck } from '../store/log/record-check.js'
import { rowFinder } from '../store/row-mover.js'
import { agentRowOf } from '../store/tables/agent.js'
import { erasedCommitment } from '../store/tables/erasures.js'
import { blockCount, recordInfoAt, recordAt, type StoredRecord } from '../store/tables/record-codec.js'
import { recordBySeq, strandEnd } from '../store/tables/records.js'
import { addPosition, runsCoveredUpTo } from '../store/tables/strand-runs.js'
import { encodeRun, isImportedBlock, packLocation, runKey, type FoundRun } from '../store/tables/tables.js'

const HASH_BYTES = 32

/**
 * Checks all strands of a shard in the order of its blocks: each record matches its hash and links to the
 * previous record of its strand, the clocks of the log do not go back, and the runs and the hash index find
 * each block. Memory does not grow with the records, only with the agents (60 bytes each).
 * @param onRecord called once for each record
 * @throws Error that describes the first fault
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

/** Checks that agent numbers have no gaps, and that each agent has a row with its number. */
function checkAgents(environment: Environment, agents: number): void {
  let no = 0
  for (const { key, value } of environment.names.getRange({})) {
    if (key.readUInt32BE(0) !== no) throw new Error(`Agent number ${no} is missing`)
    const row = environment.agents.get(value)
    if (row === undefined || agentRowOf(value.toString(), row).no !== no)
      throw new Error(`The row of agent number ${no} is missing or has another number`)
    no++
  }
  const rows = rowCount(environment.agents)
  if (no !== agents || rows !== agents)
    throw new Error(`There are ${no} agent numbers and ${rows} agents instead of ${agents}`)
}

class StrandCheck {
  readonly #environment: Environment
  readonly #index: HashIndex
  readonly #hashes: RecordCheck
  readonly #runsCovered: number
  readonly #agents: number
  /** For each strand: the hash of its last record so far, the seq after it, and the body bytes up to it. */
  readonly #lastHashes: Buffer
  readonly #nextSeqs: Float64Array
  readonly #bytes: Float64Array
  /** The number of records of each strand so far. */
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
    this.#hashes.startSegment([])
    const runs = new Map<number, FoundRun>()
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      const record = recordAt(block, position)
      const { agentNo, seq, hlc } = record
      const fault = this.#faultOf(record, isImportedBlock(blockNo))
      if (fault !== undefined) throw new Error(`Record ${seq} of agent number ${agentNo} ${fault}`)
      const strandBytes = this.#take(record, recordInfoAt(block, position).bodyBytes)
      let run = runs.get(agentNo)
      if (run === undefined) {
        run = { firstSeq: seq, blockNo, ms: hlc.ms, counter: hlc.counter, strandBytes, positionRanges: [] }
        runs.set(agentNo, run)
      }
      addPosition(run, position)
      run.strandBytes = strandBytes
      if (position === 0) this.#checkIndex(record, packLocation(blockNo, position))
      onRecord()
    }
    // The runs of later blocks are rebuilt when the store opens.
    if (blockNo > this.#runsCovered && !isImportedBlock(blockNo)) return
    for (const [agentNo, run] of runs) {
      const stored = this.#environment.strands.get(runKey(agentNo, run.firstSeq))
      if (stored === undefined || !encodeRun(run).equals(stored))
        throw new Error(`The run of agent number ${agentNo} in block ${blockNo} is missing or wrong`)
    }
  }

  end(): void {
    for (let no = 0; no < this.#agents; no++) {
      const end = strandEnd(this.#environment, no)
      if (end === undefined || this.#counts[no] !== end.record.seq + 1)
        throw new Error(`The strand of agent number ${no} does not have each of its records once`)
    }
  }

  /** @returns a predicate that says what is wrong with a record; undefined if it is valid */
  #faultOf(record: StoredRecord, imported: boolean): string | undefined {
    const { agentNo, prev, hlc } = record
    if (agentNo >= this.#agents) return 'has no agent'
    const before = this.#hashBefore(record)
    if (before === undefined) return 'has no previous record'
    if (prev !== before) return 'does not have the hash of the previous record'
    const isErased = record.erased === true
    const commitment = isErased
      ? erasedCommitment(this.#environment, record)
      : bodyCommitment(record.salt, record.body)
    const fault = this.#hashes.faultOf(record, commitment)
    if (fault !== undefined || imported) return fault
    if (compareHlc(hlc, this.#lastHlc) < 0) return 'has an earlier clock than the record before it in the log'
    this.#lastHlc = hlc
    return undefined
  }

  /** The hash of the previous record: the last one so far, unless imported records are between them. */
  #hashBefore({ agentNo, seq }: StoredRecord): string | undefined {
    if (seq === 0) return zeroHash
    if (seq !== this.#nextSeqs[agentNo]) return recordBySeq(this.#environment, agentNo, seq - 1)?.hash
    return this.#lastHashes.toString('hex', agentNo * HASH_BYTES, (agentNo + 1) * HASH_BYTES)
  }

  /** Updates the state of the strand with the next record. @returns body bytes of the strand up to it */
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
    // The previous record is in another part of the strand, so read the count from its run.
    return this.#environment.runs.before(agentNo, seq - 1)?.strandBytes ?? 0
  }

  /** Entries that are not in the index yet are added when the store opens, so they are not checked. */
  #checkIndex({ hash }: StoredRecord, location: number): void {
    if (this.#index.covers(location) && !this.#index.find(prefixOf(hash)).includes(location))
      throw new Error(`Record ${hash} is not in the hash index`)
  }
}
