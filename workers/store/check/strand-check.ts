import { isDeepStrictEqual } from 'node:util'
import { ChainCheck, placeOf } from '../../../src/proof/chain-check.js'
import { endFault } from '../../../src/proof/export-check.js'
import { runSync } from '../../../src/proof/job.js'
import { jobs } from '../../../src/proof/node/jobs.js'
import { readRecord } from '../../../src/proof/record.js'
import { headerText } from '../../../src/strand/header.js'
import { keyRotateType } from '../../../src/strand/record-type.js'
import type { RetiredKey } from '../tables/agent.js'
import type { Environment } from '../environment.js'
import { exportedRecord } from '../exported-record.js'
import type { StoredRecord } from '../tables/record-codec.js'
import { recordsFrom, strandEnd } from '../tables/records.js'
import { StrandEffects, type CheckedAgent } from './strand-effects.js'
import { TreeCheck } from './tree-check.js'

/** Records between two calls of `onRecords`. */
const PROGRESS_RECORDS = 256

/**
 * Checks one strand from genesis to head, as a verifier checks an export: form, hash, link, clock,
 * commitment, key and signature or seal of every record. Also checks the agent's rows against its records.
 * Memory does not grow with the strand.
 * @param onRecords called with the records checked since the last call; may throw to stop the check
 * @yields faults; a broken link ends the check of the chain
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
  const trees = new TreeCheck(environment.trees, row.no)
  const rotations: RetiredKey[] = []
  for (const record of recordsFrom(environment, row.no, { fromSeq: 0, order: 'asc' })) {
    const { seq } = chain.place
    const fault = recordFault(record, { environment, agent, keys, chain }) ?? effects.take(record)
    if (fault !== undefined) {
      yield `record ${seq}: ${fault}`
      if (chain.place.seq === seq) return
    }
    const treeFault = trees.take(record.seq, Buffer.from(record.hash, 'hex'))
    if (treeFault !== undefined) yield `record ${seq}: ${treeFault}`
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
    yield 'The keys of the agent do not match its records'
  }
  // An unfinished import may have rows whose records are still missing.
  if (row.importing !== true) yield* effects.end()
}

interface CheckContext {
  environment: Environment
  agent: CheckedAgent
  keys: readonly string[]
  chain: ChainCheck
}

/** @returns what is wrong with the record or its position in the chain */
function recordFault(
  record: StoredRecord,
  { environment, agent, keys, chain }: CheckContext,
): string | undefined {
  if (record.agentNo !== agent.row.no) return 'The record belongs to another agent'
  const key = keys[record.keyIndex]
  if (key === undefined) return 'The record names a key that the agent never had'
  const { header, content } = exportedRecord(environment, record, { strand: agent.row.strand, key })
  const read = readRecord({ h: headerText(header), ...content })
  const fault = chain.take(read, runSync(chain.examine(read), jobs))
  if (fault !== undefined) return fault
  return chain.place.head === record.hash ? undefined : 'The stored hash does not match the header'
}
