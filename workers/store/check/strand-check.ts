import { isDeepStrictEqual } from 'node:util'
import { asBuffer } from '../../../src/base/bytes.js'
import { ChainCheck, placeOf } from '../../../src/proof/chain-check.js'
import { endFault } from '../../../src/proof/export-check.js'
import { runNow } from '../../../src/proof/job.js'
import { jobs } from '../../../src/proof/node/jobs.js'
import { readRecord } from '../../../src/proof/record.js'
import { bodyCommitment } from '../../../src/strand/hash.js'
import { headerText, zeroHash } from '../../../src/strand/header.js'
import { formatHlc } from '../../../src/strand/hlc.js'
import { keyRotateType } from '../../../src/strand/record-type.js'
import type { RecordLine } from '../../../src/strand/strand-export.js'
import type { RetiredKey } from '../tables/agent.js'
import type { Environment } from '../environment.js'
import { erasedCommitment } from '../tables/erasures.js'
import type { StoredRecord } from '../tables/record-codec.js'
import { recordsFrom, strandEnd } from '../tables/records.js'
import { StrandEffects, type CheckedAgent } from './strand-effects.js'

/** Records between two calls of `onRecords`. */
const PROGRESS_RECORDS = 256

/**
 * Checks one strand as an export of it would be, from genesis to head: form, hash, link, clock, commitment, signature
 * or seal and key of every record, and that the tables say of the agent what its records say. Memory does not grow with
 * the strand.
 * @param onRecords called with the records checked since the last call; ends the check by throwing
 * @yields what is wrong; after a broken link no more of the chain is checked
 */
export function* checkStrand(
  environment: Environment,
  agent: CheckedAgent,
  onRecords: (count: number) => void,
): Generator<string> {
  const { name, row } = agent
  const retired = row.retiredKeys ?? []
  const keys = [...retired.map(({ publicKey }) => publicKey), row.publicKey]
  const toSeq = strandEnd(environment, row.no)?.record.seq ?? 0
  const manifest = {
    agent: name,
    strand: row.strand,
    publicKey: keys[0] ?? '',
    fromSeq: 0,
    toSeq,
    recordCount: toSeq,
  }
  const chain = new ChainCheck(manifest, placeOf(manifest), {})
  const effects = new StrandEffects(environment, agent)
  const rotations: RetiredKey[] = []
  for (const record of recordsFrom(environment, row.no, { fromSeq: 0, order: 'asc' })) {
    const { seq } = chain.place
    const fault = recordFault(record, { environment, agent, keys, chain }) ?? effects.take(record)
    if (fault !== undefined) {
      yield `record ${seq}: ${fault}`
      if (chain.place.seq === seq) return
    }
    if (record.type === keyRotateType) {
      rotations.push({ publicKey: keys[record.keyIndex] ?? '', lastSeq: record.seq })
    }
    if (chain.tally.records % PROGRESS_RECORDS === 0) onRecords(PROGRESS_RECORDS)
  }
  const { records } = chain.tally
  onRecords(records % PROGRESS_RECORDS)
  const ended = endFault(manifest, { place: chain.place, records, trusted: true })
  if (ended !== undefined) yield ended
  if (chain.place.key !== row.publicKey || !isDeepStrictEqual(rotations, [...retired])) {
    yield 'The keys of the agent are not those that its records lead to'
  }
  // The records that an unfinished import's rows follow from may still be missing.
  if (row.importing !== true) yield* effects.end()
}

interface Around {
  environment: Environment
  agent: CheckedAgent
  keys: readonly string[]
  chain: ChainCheck
}

/** What is wrong with a record and its place in the chain. */
function recordFault(record: StoredRecord, { environment, agent, keys, chain }: Around): string | undefined {
  if (record.agentNo !== agent.row.no) return 'The place holds a record of another agent'
  const key = keys[record.keyIndex]
  if (key === undefined) return 'The record names a key that the agent never had'
  const read = readRecord(lineOf(record, { environment, strand: agent.row.strand, key }))
  const fault = chain.take(read, runNow(chain.examine(read), jobs))
  if (fault !== undefined) return fault
  return chain.place.head === record.hash ? undefined : 'The hash is not that of the header'
}

/** The record as an export would show it. */
function lineOf(
  record: StoredRecord,
  { environment, strand, key }: { environment: Environment; strand: string; key: string },
): RecordLine {
  const erased = record.erased === true
  const header = {
    strand: record.seq === 0 ? zeroHash : strand,
    key,
    seq: record.seq,
    prev: record.prev,
    hlc: formatHlc(record.hlc),
    type: record.type,
    body: erased ? erasedCommitment(environment, record) : bodyCommitment(record.salt, record.body),
  }
  const line: RecordLine = {
    h: headerText(header),
    sig: record.signature === undefined ? undefined : asBuffer(record.signature).toString('hex'),
    sealedBy: record.sealedBy,
  }
  if (erased) return line
  line.salt = asBuffer(record.salt).toString('hex')
  line.body = asBuffer(record.body).toString('utf8')
  return line
}
