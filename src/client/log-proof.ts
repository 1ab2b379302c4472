import { examineRecord } from './chain-check.js'
import { type Checkpoint, verifyCheckpoint } from './checkpoint.js'
import { membersOf, parseLine } from './export-lines.js'
import { growsFrom, hashesOf, leadsToRoot } from './tree-proof.js'
import type { ConsistencyResponse, LogConsistencyResponse, LoggedHeadResponse } from './types.js'
import { SignatureCheck, requireEd25519 } from './webcrypto.js'

/** A strand, or the server log, that only grew; both sizes count genesis. */
export interface Grown {
  ok: true
  /** `strandfast/` and the strand. */
  origin: string
  from: number
  to: number
}

/** A head that the server log tells of. */
export interface VerifiedHead {
  ok: true
  strand: string
  /** Records, genesis counted. */
  size: number
  /** Hash of the last of them. */
  hash: string
  /** Records of the log that tell so. */
  logSize: number
}

/** Why a proof does not hold. */
export interface ProofFault {
  ok: false
  reason: string
}

/**
 * The keys that two checkpoints are to be signed by: each by the one in force when it was made. That is one key, unless it
 * was rotated in between.
 */
export interface ConsistencyKeys {
  /** Of the newer one, 64 hex digits. */
  publicKey: string
  /** Of the older one; the same unless given. */
  keptKey?: string | undefined
}

/** A consistency proof, as far as it is looked at. Older servers have no checkpoint for a size before a rotation. */
type GrowthProof = Pick<ConsistencyResponse | LogConsistencyResponse, 'path'> & { checkpoint: string | null }

const fault = (reason: string): ProofFault => ({ ok: false, reason })

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
  const signatures = new SignatureCheck()
  const { publicKey, keptKey = publicKey } = keys
  const older = await verifyCheckpoint(kept, keptKey, signatures)
  if (older === undefined) return fault('The checkpoint that was kept is not signed by the key')
  if (typeof proof.checkpoint !== 'string') return fault('The proof has no checkpoint')
  const newer = await verifyCheckpoint(proof.checkpoint, publicKey, signatures)
  if (newer === undefined) return fault('The checkpoint of the proof is not signed by the key')
  if (newer.origin !== older.origin) return fault('The proof is of another strand')
  if (newer.size < older.size) {
    return fault(`The tail was cut: ${older.size} records were kept, ${newer.size} are there`)
  }
  const path = hashesOf(proof.path)
  const between = { from: older.size, to: newer.size, fromRootHex: older.rootHex, toRootHex: newer.rootHex }
  if (path === undefined || !(await growsFrom({ ...between, path }))) {
    return fault(
      `The first ${older.size} of the ${newer.size} records are not shown to be those that were kept`,
    )
  }
  return { ok: true, origin: older.origin, from: older.size, to: newer.size }
}

/**
 * Checks by WebCrypto alone where a strand stood by the server log, nothing asked of the service. The caller knows the
 * log's public key and, unless it takes the answer's word for it, whose strand it is.
 * @throws Error where the platform has no Ed25519
 */
export async function verifyLoggedHead(
  proof: LoggedHeadResponse,
  { logKey }: { logKey: string },
): Promise<VerifiedHead | ProofFault> {
  await requireEd25519()
  const signatures = new SignatureCheck()
  const { strand, size, hash, log } = proof
  const checkpoint = await verifyCheckpoint(log.checkpoint, logKey, signatures)
  if (checkpoint === undefined) return fault('The checkpoint of the log is not signed by the key')
  const heads = await headsOf(proof, { checkpoint, logKey, signatures })
  if ('ok' in heads) return heads
  const told = heads.some(
    (head) => Array.isArray(head) && head[0] === strand && head[1] === size && head[2] === hash,
  )
  if (!told) return fault('The record of the log tells of another head')
  return { ok: true, strand, size, hash, logSize: checkpoint.size }
}

/** The heads of the log's record, once it is shown to be one of the log. */
async function headsOf(
  { log }: LoggedHeadResponse,
  trusted: { checkpoint: Checkpoint; logKey: string; signatures: SignatureCheck },
): Promise<unknown[] | ProofFault> {
  const { checkpoint, logKey, signatures } = trusted
  const line = parseLine(JSON.stringify(log.record))
  if (line === undefined || !('record' in line)) return fault('The record of the log is none')
  const { header, hash, bodyMatches, signatureMatches } = await examineRecord(line.record, signatures)
  const path = hashesOf(log.path)
  if (header === undefined || path === undefined) return fault('The record of the log is none')
  if (header.key !== logKey || !signatureMatches)
    return fault('The record of the log is not signed by the key')
  if (checkpoint.origin !== `strandfast/${header.strand}`) return fault('The checkpoint is of another strand')
  if (header.type !== 'sys/heads' || !bodyMatches) return fault('The record of the log is not of heads')
  const place = { index: header.seq, size: checkpoint.size, leaf: hash, path, rootHex: checkpoint.rootHex }
  if (!(await leadsToRoot(place))) return fault('The record is not shown to be in the log')
  const { heads } = membersOf(line.record.body)
  return Array.isArray(heads) ? heads : fault('The record of the log is not of heads')
}
