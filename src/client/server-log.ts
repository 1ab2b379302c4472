import { readCall } from './collection.js'
import type { Transport } from './http.js'
import type { CallOptions, LogConsistency, LoggedHeadProof, ConsistencyProof } from './types.js'
import { type ConsistencyKeys, type Grown, type ProofFault, checkGrowth } from '../proof/growth.js'
import { runAsync } from '../proof/job.js'
import { type LogTrust, type VerifiedHead, checkLoggedHead } from '../proof/logged-head.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** Options of a consistency proof. */
export interface ConsistencyOptions extends CallOptions {
  /** Size of the newer tree; all records by default. */
  to?: number | undefined
}

/** Options of a proof of a logged head. */
export interface LogProofOptions extends CallOptions {
  /** Number of records of the log to consider; all by default. */
  at?: number | undefined
}

/**
 * The server log, which contains the heads of all strands. `verifyConsistency` and `verifyLoggedHead` check
 * its answers against an earlier checkpoint. Methods reject as those of the client do, and with 404
 * `not_found` if the service has no log.
 */
export class LogClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The checkpoint of the log, a C2SP tlog-checkpoint signed note. Store it to check the log later. */
  checkpoint(options: CallOptions = {}): Promise<string> {
    return this.#transport.text({
      ...readCall('/v1/log/checkpoint', options),
      headers: { accept: 'text/plain' },
    })
  }

  /** Proof that the log has only grown since it had `from` records (RFC 6962 consistency proof). */
  consistency(from: number, options: ConsistencyOptions = {}): Promise<LogConsistency> {
    return this.#transport.json(readCall('/v1/log/consistency', options, { from, to: options.to }))
  }

  /**
   * The head of an agent's strand in the log, or in the first `at` records of the log. It proves that the log
   * contains this head, but not that it contains no later one: that needs an export of the log. Errors: 404
   * `head_not_logged` if the log does not contain the strand yet
   */
  proof(agent: string, options: LogProofOptions = {}): Promise<LoggedHeadProof> {
    return this.#transport.json(readCall('/v1/log/proof', options, { agent, at: options.at }))
  }
}

/**
 * The checked members of a consistency proof. Older servers have no checkpoint for a size before a rotation.
 */
type GrowthProof = Pick<ConsistencyProof | LogConsistency, 'path'> & { checkpoint: string | null }

/**
 * Checks that a strand or the server log begins with the records of an earlier checkpoint, with WebCrypto
 * only.
 * @param kept the earlier checkpoint; its size is the `from` of the proof
 * @throws Error if the platform has no Ed25519
 */
export async function verifyConsistency(
  kept: string,
  proof: GrowthProof,
  keys: ConsistencyKeys,
): Promise<Grown | ProofFault> {
  await requireEd25519()
  return runAsync(checkGrowth(kept, proof, keys), webCryptoJobs())
}

/**
 * Checks that the server log contains a head, with WebCrypto only and without a request. Does not prove that
 * the log contains no later head (docs/FORMAT.md, The server log).
 * @param trust the log's public key and, unless the caller trusts the answer, the id of the strand
 * @throws Error if the platform has no Ed25519
 */
export async function verifyLoggedHead(
  proof: LoggedHeadProof,
  trust: LogTrust,
): Promise<VerifiedHead | ProofFault> {
  await requireEd25519()
  return runAsync(checkLoggedHead(proof, trust), webCryptoJobs())
}
