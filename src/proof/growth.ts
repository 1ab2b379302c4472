import type { Check } from './job.js'
import { strandOf, verifyCheckpoint } from './note.js'
import { growsFrom, pathOf } from './tree-proof.js'

/** A strand, or the server log, that has only grown; both sizes count genesis. */
export interface Grown {
  ok: true
  /** `strandfast/` and the strand. */
  origin: string
  from: number
  to: number
}

/** Why a proof does not hold. */
export interface ProofFault {
  ok: false
  reason: string
}

/**
 * The keys that must have signed two checkpoints: for each, the one in force when it was made. It is the same key,
 * unless it was rotated in between.
 */
export interface ConsistencyKeys {
  /** For the newer one, 64 hex digits. */
  publicKey: string
  /** For the older one; the same unless given. */
  keptKey?: string | undefined
  /** The strand that both must be of, 64 hex digits: two strands can have the same key. */
  strand?: string | undefined
}

/**
 * The members of a consistency proof that are checked. Older servers have no checkpoint for a size before a rotation.
 */
export interface GrowthProof {
  path: unknown
  checkpoint: unknown
}

/** Makes a proof's fault. */
export const proofFault = (reason: string): ProofFault => ({ ok: false, reason })

/** Checks that a strand, or the server log, begins with what it was when `kept` was made. */
export function* checkGrowth(
  kept: string,
  proof: GrowthProof,
  { publicKey, keptKey = publicKey, strand }: ConsistencyKeys,
): Check<Grown | ProofFault> {
  const older = yield* verifyCheckpoint(kept, keptKey)
  if (older === undefined) return proofFault('The checkpoint that was kept is not signed by the key')
  if (strand !== undefined && strandOf(older) !== strand.toLowerCase())
    return proofFault('The checkpoint that was kept is of another strand than the one given')
  if (typeof proof.checkpoint !== 'string') return proofFault('The proof has no checkpoint')
  const newer = yield* verifyCheckpoint(proof.checkpoint, publicKey)
  if (newer === undefined) return proofFault('The checkpoint of the proof is not signed by the key')
  if (newer.origin !== older.origin) return proofFault('The proof is of another strand')
  if (newer.size < older.size) {
    return proofFault(`The tail was cut: ${older.size} records were kept, ${newer.size} are there`)
  }
  const path = pathOf(proof.path)
  const between = { from: older.size, to: newer.size, fromRootHex: older.rootHex, toRootHex: newer.rootHex }
  if (path === undefined || !(yield* growsFrom({ ...between, path }))) {
    return proofFault(
      `The first ${older.size} of the ${newer.size} records are not shown to be those that were kept`,
    )
  }
  return { ok: true, origin: older.origin, from: older.size, to: newer.size }
}
