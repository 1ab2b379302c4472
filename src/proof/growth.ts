import type { Check } from './job.js'
import { strandOf, verifyCheckpoint } from './note.js'
import { growsFrom, pathOf } from './tree-proof.js'

/** The result for a strand, or the server log, that was only appended to. Both sizes include genesis. */
export interface Grown {
  ok: true
  /** `strandfast/` and the strand. */
  origin: string
  from: number
  to: number
}

/** The reason why a proof is invalid. */
export interface ProofFault {
  ok: false
  reason: string
}

/** The keys that must have signed two checkpoints: for each, the one in force when it was made. */
export interface ConsistencyKeys {
  /** The key of the newer checkpoint, 64 hex digits. */
  publicKey: string
  /** The key of the older checkpoint, if it was rotated in between. */
  keptKey?: string | undefined
  /** The expected strand, 64 hex digits; two strands can have the same key. */
  strand?: string | undefined
}

/**
 * The checked members of a consistency proof. Older servers have no checkpoint for a size before a rotation.
 */
export interface GrowthProof {
  path: unknown
  checkpoint: unknown
}

/** Creates a `ProofFault`. */
export const proofFault = (reason: string): ProofFault => ({ ok: false, reason })

/**
 * Checks that a strand, or the server log, still begins with the records of the earlier checkpoint `kept`.
 */
export function* checkGrowth(
  kept: string,
  proof: GrowthProof,
  { publicKey, keptKey = publicKey, strand }: ConsistencyKeys,
): Check<Grown | ProofFault> {
  const older = yield* verifyCheckpoint(kept, keptKey)
  if (older === undefined) return proofFault('The earlier checkpoint is not signed by the key')
  if (strand !== undefined && strandOf(older) !== strand.toLowerCase())
    return proofFault('The earlier checkpoint is of another strand than the one given')
  if (typeof proof.checkpoint !== 'string') return proofFault('The proof has no checkpoint')
  const newer = yield* verifyCheckpoint(proof.checkpoint, publicKey)
  if (newer === undefined) return proofFault('The checkpoint of the proof is not signed by the key')
  if (newer.origin !== older.origin) return proofFault('The proof is of another strand')
  if (newer.size < older.size) {
    return proofFault(
      `The tail was cut: the earlier checkpoint has ${older.size} records, the newer one ${newer.size}`,
    )
  }
  const path = pathOf(proof.path)
  const between = { from: older.size, to: newer.size, fromRootHex: older.rootHex, toRootHex: newer.rootHex }
  if (path === undefined || !(yield* growsFrom({ ...between, path }))) {
    return proofFault(
      `The proof does not show that the first ${older.size} of ${newer.size} records are unchanged`,
    )
  }
  return { ok: true, origin: older.origin, from: older.size, to: newer.size }
}
