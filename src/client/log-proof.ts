import { type ConsistencyKeys, type Grown, type ProofFault, checkGrowth } from '../proof/growth.js'
import { runLater } from '../proof/job.js'
import { type LogTrust, type VerifiedHead, checkLoggedHead } from '../proof/logged-head.js'
import type { ConsistencyResponse, LogConsistencyResponse, LoggedHeadResponse } from './types.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/**
 * The members of a consistency proof that are checked. Older servers have no checkpoint for a size before a rotation.
 */
type GrowthProof = Pick<ConsistencyResponse | LogConsistencyResponse, 'path'> & { checkpoint: string | null }

/**
 * Checks with WebCrypto alone that a strand, or the server log, begins with what it was when `kept` was made: a
 * checkpoint that the caller has kept, of the size from which the proof was asked for.
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
 * Checks with WebCrypto alone that the server log names a head, without asking the service. It does not prove that the
 * log names no later one (docs/FORMAT.md, The server log). The caller knows the log's public key and, unless it trusts
 * the answer, whose strand it is.
 * @throws Error where the platform has no Ed25519
 */
export async function verifyLoggedHead(
  proof: LoggedHeadResponse,
  trust: LogTrust,
): Promise<VerifiedHead | ProofFault> {
  await requireEd25519()
  return runLater(checkLoggedHead(proof, trust), webCryptoJobs())
}
