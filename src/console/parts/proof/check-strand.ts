import { type ServiceClient, type VerifiedExport, verifyConsistency } from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { runAsync } from '../../../proof/job.js'
import { verifyCheckpoint } from '../../../proof/note.js'
import { leadsToRoot, pathOf } from '../../../proof/tree-proof.js'
import { recordsText } from '../format.js'
import { checkInWorker } from './checker.js'
import type { StoredCheck } from './stored-check.js'

/** The result of checking a strand. `since` is the earlier check on which it builds. */
export type StrandVerdict =
  | { ok: true; found: VerifiedExport; kept: StoredCheck; since: StoredCheck | undefined }
  /** @param seq the invalid record; undefined if the fault concerns no single record */
  | { ok: false; seq: number | undefined; reason: string }

export interface StrandCheck {
  service: ServiceClient
  agent: string
  strand: string
  /** The public key that the user trusts, 64 hex digits; undefined for none. */
  publicKey: string | undefined
  /** The earlier check to continue from; undefined to check the whole strand. */
  kept: StoredCheck | undefined
  onProgress: (progress: { records: number; of: number }) => void
  signal: AbortSignal
  nowMs: () => number
}

/** Checks a whole strand, or only the records added since an earlier check. */
export async function checkStrand(check: StrandCheck): Promise<StrandVerdict> {
  await requireEd25519()
  return check.kept === undefined ? checkWhole(check) : checkAdded(check, check.kept)
}

async function checkWhole(check: StrandCheck): Promise<StrandVerdict> {
  const { service, agent, strand, publicKey, signal, nowMs } = check
  const { record_count: headSeq } = await service.agent(agent).status({ signal })
  const { result, checkpoint } = await checkInWorker({
    stream: await service.exportStrand({ agent, toSeq: headSeq, signal }),
    options: { strand, publicKey },
    // The genesis is not counted.
    onProgress: (records) => check.onProgress({ records: records - 1, of: headSeq }),
    signal,
  })
  if (!result.ok) return { ok: false, seq: result.seq, reason: result.reason }
  if (checkpoint === undefined) return fault('The export has no checkpoint')
  return {
    ok: true,
    found: result,
    since: undefined,
    kept: keptOf(result, checkpoint, { trusted: publicKey ?? '', checkedAtMs: nowMs() }),
  }
}

/**
 * A consistency proof shows that the tree extends the one checked before. An export from its last record on
 * shows that the chain continues there. An inclusion proof shows that the end of this chain is in the tree.
 */
async function checkAdded(check: StrandCheck, kept: StoredCheck): Promise<StrandVerdict> {
  const { service, agent, strand, signal, nowMs } = check
  const { record_count: headSeq, public_key: publicKey } = await service.agent(agent).status({ signal })
  if (headSeq + 1 < kept.size)
    return fault(
      `The strand was truncated: ${recordsText(kept.size - 1)} were checked before, it now has ${recordsText(headSeq)}`,
    )
  const proof = await service.consistency(agent, kept.size, { to: headSeq + 1, signal })
  if (proof.checkpoint === null) return fault('The server returned a proof without a checkpoint')
  const keys = { publicKey, keptKey: kept.publicKey, strand }
  const grown = await verifyConsistency(kept.checkpoint, proof, keys)
  if (!grown.ok) return fault(grown.reason)
  const fromSeq = kept.size - 1
  const { result } = await checkInWorker({
    stream: await service.exportStrand({ agent, fromSeq, toSeq: headSeq, signal }),
    options: { strand, firstHash: kept.chainHead },
    // The last record of the earlier check is read again, but not counted.
    onProgress: (records) => check.onProgress({ records: records - 1, of: headSeq - fromSeq }),
    signal,
  })
  if (!result.ok) return { ok: false, seq: result.seq, reason: result.reason }
  if (result.publicKey !== publicKey) return fault('The current key changed during the check. Check again')
  const unbound = await inclusionFault(check, { ...result, checkpoint: proof.checkpoint })
  if (unbound !== undefined) return fault(unbound, result.lastSeq)
  return {
    ok: true,
    found: result,
    since: kept,
    kept: keptOf(result, proof.checkpoint, { trusted: kept.trusted, checkedAtMs: nowMs() }),
  }
}

/**
 * Proves that the last record is in the tree of a checkpoint.
 * @returns the reason if the proof fails, otherwise undefined
 */
export async function inclusionFault(
  { service, agent, strand, signal }: Pick<StrandCheck, 'service' | 'agent' | 'strand' | 'signal'>,
  bound: Pick<VerifiedExport, 'chainHead' | 'lastSeq' | 'publicKey'> & { checkpoint: string },
): Promise<string | undefined> {
  const { chainHead, lastSeq, publicKey, checkpoint } = bound
  const proof = await service.proof(agent, chainHead, { signal })
  const size = lastSeq + 1
  let signed = await runAsync(verifyCheckpoint(checkpoint, publicKey), webCryptoJobs())
  if (proof.tree_size !== size) {
    // Records were appended during the check, so the newer tree has to extend the one of the checkpoint.
    const newer = await service.consistency(agent, size, { to: proof.tree_size, signal })
    if (newer.checkpoint === null) return 'The server returned a proof without a checkpoint'
    const grown = await verifyConsistency(checkpoint, newer, { publicKey, strand })
    if (!grown.ok) return grown.reason
    signed = await runAsync(verifyCheckpoint(newer.checkpoint, publicKey), webCryptoJobs())
  }
  const path = pathOf(proof.path)
  if (signed === undefined || path === undefined) return 'The proof of the last record is malformed'
  const inclusion = {
    index: lastSeq,
    size: signed.size,
    leaf: chainHead,
    path,
    rootHex: signed.rootHex,
  }
  const isIncluded = await runAsync(leadsToRoot(inclusion), webCryptoJobs())
  return isIncluded ? undefined : 'The path of the last record does not lead to the root of the checkpoint'
}

function keptOf(
  { lastSeq, chainHead, publicKey }: VerifiedExport,
  checkpoint: string,
  when: Pick<StoredCheck, 'trusted' | 'checkedAtMs'>,
): StoredCheck {
  return { checkpoint, size: lastSeq + 1, chainHead, publicKey, ...when }
}

function fault(reason: string, seq?: number): StrandVerdict {
  return { ok: false, seq, reason }
}
