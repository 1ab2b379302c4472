import { type ConsistencyKeys, type Grown, type ProofFault, checkGrowth } from '../proof/growth.js'
import { runLater } from '../proof/job.js'
import { type LogTrust, type VerifiedHead, checkLoggedHead } from '../proof/logged-head.js'
import type { ConsistencyResponse, LogConsistencyResponse, LoggedHeadResponse } from './types.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** A consistency proof, as far as it is looked at. Older servers have no checkpoint for a size before a rotation. */
type GrowthProof = Pick<ConsistencyResponse | LogConsistencyResponse, 'path'> & { checkpoint: string | null }

/**
 * Checks by WebCrypto alone that a strand, or the server log, begins as it did when `kept` was made: a checkpoint that
 * the caller has kept, of the size that the proof was asked from.
 * @throws Error where the platform has no Ed25519
 */
export async function verifyConsistency(
  kept: string,
  proof: GrowthProof,
  keys: ConsistencyKeys,
): Promise<Grown | ProofFault> {
  await requireEd25519()
  return runLater(checkGrowth(kept, proof, keys), webCryptoJobs())
}

/**
 * Checks by WebCrypto alone that the server log told of a head, nothing asked of the service. It was told; that nothing
 * further was told later is not shown (docs/FORMAT.md, The server log). The caller knows the log's public key and, unless
 * it takes the answer's word for it, whose strand it is.
 * @throws Error where the platform has no Ed25519
 */
export async function verifyLoggedHead(
  proof: LoggedHeadResponse,
  trust: LogTrust,
): Promise<VerifiedHead | ProofFault> {
  await requireEd25519()
  return runLater(checkLoggedHead(proof, trust), webCryptoJobs())
}
