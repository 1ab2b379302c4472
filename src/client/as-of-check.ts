import { type ProofFault, proofFault as fault } from '../proof/growth.js'
import { runLater } from '../proof/job.js'
import { isSignedBy, parseCheckpoint, strandOf } from '../proof/note.js'
import type { ExportSource } from './text-lines.js'
import type { AsOfResponse } from './types.js'
import { verifyExport } from './verify-export.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** A strand at a moment, according to a signed checkpoint. */
export interface VerifiedMoment {
  ok: true
  /** Hash of the genesis record, 64 hex digits. */
  strand: string
  /** Records then, genesis counted. */
  size: number
  /** Root over them, 64 hex digits. */
  rootHex: string
}

/** What the caller trusts. */
export interface MomentTrust {
  /**
   * The agent's public key, 64 hex digits, known from elsewhere than the answer. Without an export it must be the key
   * that has signed the checkpoint, which is the one in force at the time of the request.
   */
  publicKey: string
  /**
   * The strand, 64 hex digits, noted when it was first seen: whoever holds the key can begin another strand with it.
   */
  strand?: string | undefined
  /**
   * An export of the strand from its first record, later than the answer: with it the key may be any that the strand
   * has had, since its rotations lead from key to key, and the head of that moment is checked too.
   */
  strandExport?: ExportSource | undefined
}

type Moment = Pick<AsOfResponse, 'chain_head' | 'record_count' | 'checkpoint'>

/**
 * Checks with WebCrypto alone the checkpoint of a strand at a moment, which each page of `asOf` contains. It proves the
 * count and, with the export, the head; only the export proves that a page's records are in the strand.
 * @throws Error where the platform has no Ed25519; what reading the export throws
 */
export async function verifyAsOf(
  answer: Moment,
  { publicKey, strandExport, strand: expected }: MomentTrust,
): Promise<VerifiedMoment | ProofFault> {
  await requireEd25519()
  const { checkpoint: note, record_count: count, chain_head: head } = answer
  if (note === null) return fault('The answer has no checkpoint')
  const parsed = parseCheckpoint(note)
  const strand = parsed && strandOf(parsed)
  if (parsed === undefined || strand === undefined) {
    return fault('The checkpoint of the answer is no signed note of this form')
  }
  if (expected !== undefined && expected.toLowerCase() !== strand) {
    return fault('The checkpoint of the answer is of another strand than the one given')
  }
  const { size, rootHex } = parsed
  if (size !== count + 1) return fault(`The checkpoint is of ${size} records, the answer of ${count + 1}`)
  const isSigned = await runLater(isSignedBy(parsed, publicKey), webCryptoJobs())
  if (strandExport === undefined) {
    if (!isSigned) return fault('The checkpoint of the answer is not signed by the key')
  } else {
    // The key that signed the checkpoint need not have signed a record of the export: it may be newer than all of them.
    const trusted = isSigned ? {} : { publicKey }
    const result = await verifyExport(strandExport, { ...trusted, kept: note })
    if (!result.ok) return fault(`The export: line ${result.line}: ${result.reason}`)
    if (result.kept?.chainHead !== head)
      return fault('The head of the answer is not the one that the strand had')
  }
  return { ok: true, strand, size, rootHex }
}
