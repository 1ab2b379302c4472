import { type ServiceClient, type VerifiedExport, verifyConsistency } from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { runLater } from '../../../proof/job.js'
import { verifyCheckpoint } from '../../../proof/note.js'
import { leadsToRoot, pathOf } from '../../../proof/tree-proof.js'
import { checkInWorker } from './checker.js'
import type { KeptCheck } from './kept.js'

/** What a check of a strand found. */
export type StrandVerdict =
  | { ok: true; found: VerifiedExport; kept: KeptCheck; since: KeptCheck | undefined }
  /** @param seq the record at fault, where the fault is one record's */
  | { ok: false; seq: number | undefined; reason: string }

/** What is checked, and how. */
export interface StrandCheck {
  service: ServiceClient
  agent: string
  strand: string
  /** Key that the reader of the page trusts; undefined for none. */
  publicKey: string | undefined
  /** The check to go on from; undefined for the whole strand. */
  kept: KeptCheck | undefined
  onProgress: (progress: { records: number; of: number }) => void
  signal: AbortSignal
  nowMs: () => number
}

/** Checks a strand: the whole of it, or what was added to the one that was checked before. */
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
    onProgress: (records) => check.onProgress({ records, of: headSeq + 1 }),
    signal,
  })
  if (!result.ok) return { ok: false, seq: result.seq, reason: result.reason }
  if (checkpoint === undefined) return fault('The export carries no checkpoint')
  return {
    ok: true,
    found: result,
    since: undefined,
    kept: keptOf(result, checkpoint, { trusted: publicKey ?? '', checkedAtMs: nowMs() }),
  }
}

/**
 * A consistency proof shows that the tree begins with the one that was checked; the export from its last record on, that
 * the chain goes on from there; an inclusion proof, that this chain's end is in the tree.
 */
async function checkAdded(check: StrandCheck, kept: KeptCheck): Promise<StrandVerdict> {
  const { service, agent, strand, signal, nowMs } = check
  const { record_count: headSeq, public_key: publicKey } = await service.agent(agent).status({ signal })
  if (headSeq + 1 < kept.size)
    return fault(`The tail was cut: ${kept.size} records were checked before, ${headSeq + 1} are there now`)
  const proof = await service.consistency(agent, kept.size, { to: headSeq + 1, signal })
  if (proof.checkpoint === null) return fault('The server gave no checkpoint for its proof')
  const keys = { publicKey, keptKey: kept.publicKey, strand }
  const grown = await verifyConsistency(kept.checkpoint, proof, keys)
  if (!grown.ok) return fault(grown.reason)
  const fromSeq = kept.size - 1
  const { result } = await checkInWorker({
    stream: await service.exportStrand({ agent, fromSeq, toSeq: headSeq, signal }),
    options: { strand, firstHash: kept.chainHead },
    onProgress: (records) => check.onProgress({ records, of: headSeq - fromSeq + 1 }),
    signal,
  })
  if (!result.ok) return { ok: false, seq: result.seq, reason: result.reason }
  if (result.publicKey !== publicKey) return fault('The key in force changed during the check. Check again')
  const unbound = await unboundFault(check, { ...result, checkpoint: proof.checkpoint })
  if (unbound !== undefined) return fault(unbound, result.lastSeq)
  return {
    ok: true,
    found: result,
    since: kept,
    kept: keptOf(result, proof.checkpoint, { trusted: kept.trusted, checkedAtMs: nowMs() }),
  }
}

/** What is wrong with the place in the tree of the last record that a checkpoint counts, or undefined. */
export async function unboundFault(
  { service, agent, strand, signal }: Pick<StrandCheck, 'service' | 'agent' | 'strand' | 'signal'>,
  bound: Pick<VerifiedExport, 'chainHead' | 'lastSeq' | 'publicKey'> & { checkpoint: string },
): Promise<string | undefined> {
  const { chainHead, lastSeq, publicKey, checkpoint } = bound
  const proof = await service.proof(agent, chainHead, { signal })
  const size = lastSeq + 1
  let named = await runLater(verifyCheckpoint(checkpoint, publicKey), webCryptoJobs())
  if (proof.tree_size !== size) {
    // Records were written meanwhile: the newer tree has to begin with the one just shown.
    const newer = await service.consistency(agent, size, { to: proof.tree_size, signal })
    if (newer.checkpoint === null) return 'The server gave no checkpoint for its proof'
    const grown = await verifyConsistency(checkpoint, newer, { publicKey, strand })
    if (!grown.ok) return grown.reason
    named = await runLater(verifyCheckpoint(newer.checkpoint, publicKey), webCryptoJobs())
  }
  const path = pathOf(proof.path)
  if (named === undefined || path === undefined) return 'The path of the last record cannot be read'
  const place = {
    index: lastSeq,
    size: named.size,
    leaf: chainHead,
    path,
    rootHex: named.rootHex,
  }
  const leads = await runLater(leadsToRoot(place), webCryptoJobs())
  return leads ? undefined : 'The path of the last record does not lead to the root of the checkpoint'
}

function keptOf(
  { lastSeq, chainHead, publicKey }: VerifiedExport,
  checkpoint: string,
  when: Pick<KeptCheck, 'trusted' | 'checkedAtMs'>,
): KeptCheck {
  return { checkpoint, size: lastSeq + 1, chainHead, publicKey, ...when }
}

function fault(reason: string, seq?: number): StrandVerdict {
  return { ok: false, seq, reason }
}
