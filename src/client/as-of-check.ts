import { type ProofFault, proofFault as fault } from '../proof/growth.js'
import { runAsync } from '../proof/job.js'
import { isSignedBy, parseCheckpoint, strandOf } from '../proof/note.js'
import type { ExportSource } from './text-lines.js'
import type { AsOfResponse } from './types.js'
import { verifyExport } from './verify-export.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** A strand as of a moment, according to a signed checkpoint. */
export interface VerifiedMoment {
  ok: true
  /** Hash of the genesis record, 64 hex digits. */
  strand: string
  /** Number of records at that moment, including the genesis record. */
  size: number
  /** Merkle root over these records, 64 hex digits. */
  rootHex: string
}

/** Values that the caller trusts. */
export interface MomentTrust {
  /**
   * The agent's public key, 64 hex digits, from another source than the answer. Without an export, it must be
   * the key that has signed the checkpoint, which is the current key at the time of the request.
   */
  publicKey: string
  /**
   * The id of the strand, 64 hex digits, as noted when it was first seen: the owner of the key can begin
   * another strand with it.
   */
  strand?: string | undefined
  /**
   * An export of the strand from its first record, made after the answer. With an export, the key may be any
   * key of the strand, because the export contains all key rotations, and the head is checked too.
   */
  strandExport?: ExportSource | undefined
}

type Moment = Pick<AsOfResponse, 'chain_head' | 'record_count' | 'checkpoint'>

/**
 * Checks the checkpoint in a page of `asOf`, with WebCrypto only. The checkpoint proves the record count and,
 * with an export, the head. Only an export proves that the records of the page are in the strand.
 * @throws Error if the platform has no Ed25519; errors of reading the export
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
    return fault('The checkpoint of the answer is not a valid signed note')
  }
  if (expected !== undefined && expected.toLowerCase() !== strand) {
    return fault('The checkpoint of the answer belongs to another strand than the given one')
  }
  const { size, rootHex } = parsed
  if (size !== count + 1) return fault(`The checkpoint has ${size} records, the answer ${count + 1}`)
  const isSigned = await runAsync(isSignedBy(parsed, publicKey), webCryptoJobs())
  if (strandExport === undefined) {
    if (!isSigned) return fault('The checkpoint of the answer is not signed by the key')
  } else {
    // The key of the checkpoint may be newer than all records of the export, so it need not have signed one
    // of them.
    const trusted = isSigned ? {} : { publicKey }
    const result = await verifyExport(strandExport, { ...trusted, kept: note })
    if (!result.ok) return fault(`The export: line ${result.line}: ${result.reason}`)
    if (result.kept?.chainHead !== head)
      return fault('The head of the answer is not the head of the strand at that moment')
  }
  return { ok: true, strand, size, rootHex }
}
