import { readCall } from './collection.js'
import type { Transport } from './http.js'
import type { CallOptions, LogConsistencyResponse, LoggedHeadResponse, ConsistencyResponse } from './types.js'
import { type ConsistencyKeys, type Grown, type ProofFault, checkGrowth } from '../proof/growth.js'
import { runLater } from '../proof/job.js'
import { type LogTrust, type VerifiedHead, checkLoggedHead } from '../proof/logged-head.js'
import { requireEd25519, webCryptoJobs } from './webcrypto.js'

/** Options of a consistency proof. */
export interface ConsistencyOptions extends CallOptions {
  /** Size of the newer tree; all records unless given. */
  to?: number | undefined
}

/** Options of a proof from the log. */
export interface LogProofOptions extends CallOptions {
  /** Records of the log that count; all unless given. */
  at?: number | undefined
}

/**
 * The server log, which names the heads of all strands. Its answers are for whoever has kept an earlier checkpoint:
 * `verifyConsistency` and `verifyLoggedHead` check it. Methods reject as those of the client do; 404 `not_found` where
 * the service keeps no log.
 */
export class LogClient {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** The checkpoint of the log, a C2SP tlog-checkpoint signed note, to be kept. */
  checkpoint(options: CallOptions = {}): Promise<string> {
    return this.#transport.text({
      ...readCall('/v1/log/checkpoint', options),
      headers: { accept: 'text/plain' },
    })
  }

  /** Proof that the log only grew since it had `from` records (RFC 6962 consistency proof). */
  consistency(from: number, options: ConsistencyOptions = {}): Promise<LogConsistencyResponse> {
    return this.#transport.json(readCall('/v1/log/consistency', options, { from, to: options.to }))
  }

  /**
   * The head of an agent's strand in the log, or in its first `at` records. It proves that the log names this head, not
   * that it names no later one: only an export of the log shows that. Errors: 404 `head_not_logged` where the log does
   * not name it yet
   */
  proof(agent: string, options: LogProofOptions = {}): Promise<LoggedHeadResponse> {
    return this.#transport.json(readCall('/v1/log/proof', options, { agent, at: options.at }))
  }
}

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
