import type { LoggedHead } from '../strand/server-log.js'
import { headsType } from '../strand/record-type.js'
import { type ProofFault, proofFault } from './growth.js'
import { readHeads } from './heads.js'
import type { Check } from './job.js'
import { type Checkpoint, strandOf, verifyCheckpoint } from './note.js'
import { bodyText, examineRecord, readLineText } from './record.js'
import { leadsToRoot, pathOf } from './tree-proof.js'

/**
 * A head that the server log names. It is not proved to be the last one that the log names: a later record can name a
 * longer strand.
 */
export interface VerifiedHead {
  ok: true
  strand: string
  /** Records, genesis counted. */
  size: number
  /** Hash of the last of them. */
  hash: string
  /** Records of the log that the proof counts. */
  logSize: number
}

/** The members of the answer to `GET /v1/log/proof` that are checked. */
export interface HeadProof {
  strand: string
  size: number
  hash: string
  log: { record: unknown; path: unknown; checkpoint: string }
}

/** What the checker of such an answer knows from elsewhere. */
export interface LogTrust {
  /** The public key of the log, 64 hex digits. */
  logKey: string
  /** The strand of the log, 64 hex digits: two strands can have the same key. */
  logStrand?: string | undefined
  /** The strand that was asked about, 64 hex digits; if it is not given, the one in the answer is believed. */
  strand?: string | undefined
}

/** Checks a head of a strand in the server log. */
export function* checkLoggedHead(proof: HeadProof, trust: LogTrust): Check<VerifiedHead | ProofFault> {
  const { strand, size, hash, log } = proof
  if (trust.strand !== undefined && trust.strand.toLowerCase() !== strand)
    return proofFault('The answer is of another strand than the one given')
  const checkpoint = yield* verifyCheckpoint(log.checkpoint, trust.logKey)
  if (checkpoint === undefined) return proofFault('The checkpoint of the log is not signed by the key')
  if (trust.logStrand !== undefined && trust.logStrand.toLowerCase() !== strandOf(checkpoint))
    return proofFault('The checkpoint is of another log than the one given')
  const heads = yield* headsOf(proof, checkpoint, trust.logKey)
  if ('ok' in heads) return heads
  const told = heads.some((head) => head.strand === strand && head.size === size && head.hash === hash)
  if (!told) return proofFault('The record of the log tells of another head')
  return { ok: true, strand, size, hash, logSize: checkpoint.size }
}

/** The heads of the record, after proving that it is a record of the log. */
function* headsOf(
  { log }: HeadProof,
  checkpoint: Checkpoint,
  logKey: string,
): Check<readonly LoggedHead[] | ProofFault> {
  const line = readLineText(JSON.stringify(log.record))
  const path = pathOf(log.path)
  if (line === undefined || !('record' in line) || line.record.header === undefined || path === undefined)
    return proofFault('The record of the log is none')
  const { header, content } = line.record
  const examined = yield* examineRecord(line.record, { strand: header.strand, signature: true })
  if (header.key !== logKey || examined.signed !== true)
    return proofFault('The record of the log is not signed by the key')
  if (strandOf(checkpoint) !== header.strand) return proofFault('The checkpoint is of another strand')
  if (header.type !== headsType || content === undefined || !examined.bodyMatches)
    return proofFault('The record of the log is not of heads')
  const leaf = examined.hash
  const place = { index: header.seq, size: checkpoint.size, leaf, path, rootHex: checkpoint.rootHex }
  if (!(yield* leadsToRoot(place))) return proofFault('The record is not shown to be in the log')
  return readHeads(bodyText(content))?.heads ?? proofFault('The record of the log is not of heads')
}
