import type { LoggedHead } from '../strand/server-log.js'
import { headsType } from '../strand/record-type.js'
import { type ProofFault, proofFault } from './growth.js'
import { readHeads } from './heads.js'
import type { Check } from './job.js'
import { type Checkpoint, strandOf, verifyCheckpoint } from './note.js'
import { bodyText, examineRecord, readLineText } from './record.js'
import { leadsToRoot, pathOf } from './tree-proof.js'

/**
 * A head in the server log. It need not be the last head of the strand: a later record can have a longer
 * strand.
 */
export interface VerifiedHead extends LoggedHead {
  ok: true
  /** Records of the log that the proof covers. */
  logSize: number
}

/** The checked members of the answer to `GET /v1/log/proof`. */
export interface HeadProof extends LoggedHead {
  log: { record: unknown; path: unknown; checkpoint: string }
}

/** The values that the caller trusts, not from the answer. */
export interface LogTrust {
  /** The public key of the log, 64 hex digits. */
  logKey: string
  /** The strand of the log, 64 hex digits; two strands can have the same key. */
  logStrand?: string | undefined
  /** The requested strand, 64 hex digits; if absent, the strand in the answer is not checked. */
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
  const isLogged = heads.some((head) => head.strand === strand && head.size === size && head.hash === hash)
  if (!isLogged) return proofFault('The record of the log has another head')
  return { ok: true, strand, size, hash, logSize: checkpoint.size }
}

/** The heads of the record, after verifying that it belongs to the log. */
function* headsOf(
  { log }: HeadProof,
  checkpoint: Checkpoint,
  logKey: string,
): Check<readonly LoggedHead[] | ProofFault> {
  const line = readLineText(JSON.stringify(log.record))
  const path = pathOf(log.path)
  if (line === undefined || !('record' in line) || line.record.header === undefined || path === undefined)
    return proofFault('The record of the log is malformed')
  const { header, content } = line.record
  const examined = yield* examineRecord(line.record, { strand: header.strand, signature: true })
  if (header.key !== logKey || examined.signed !== true)
    return proofFault('The record of the log is not signed by the key')
  if (strandOf(checkpoint) !== header.strand) return proofFault('The checkpoint is of another strand')
  if (header.type !== headsType || content === undefined || !examined.bodyMatches)
    return proofFault('The record of the log is not of heads')
  const leaf = examined.hash
  const inclusion = { index: header.seq, size: checkpoint.size, leaf, path, rootHex: checkpoint.rootHex }
  if (!(yield* leadsToRoot(inclusion)))
    return proofFault('The proof does not show that the record is in the log')
  return readHeads(bodyText(content))?.heads ?? proofFault('The record of the log is not of heads')
}
