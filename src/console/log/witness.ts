import { type ServiceClient, verifyConsistency } from '../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../client/webcrypto.js'
import { runAsync } from '../../proof/job.js'
import { parseCheckpoint, strandOf, verifyCheckpoint } from '../../proof/note.js'
import { countText, recordsText, timeText } from '../parts/format.js'
import { valueOfJson } from '../parts/json.js'
import { trustIn } from '../parts/proof/stored-check.js'
import { fails, holds, type Verdict } from '../parts/result.js'
import { logAgent } from '../parts/labels.js'
import { persistentStore } from '../storage.js'

/** The log of a server as this browser has last seen it. */
interface WitnessState {
  /** The strand of the log, which identifies the server; 64 hex digits. */
  strand: string
  /** The key that has signed `checkpoint`; 64 hex digits. */
  publicKey: string
  checkpoint: string
  /** Newest first. */
  visits: readonly Visit[]
}

/** A successful check of the log. */
export interface Visit {
  /** The number of records of the log, including genesis. */
  size: number
  atMs: number
}

export interface WitnessResult {
  verdict: Verdict
  /** The state that is stored now. A failed check does not change it. */
  kept: WitnessState | undefined
  /** The current checkpoint of the server. */
  checkpoint: string
}

const VISITS_MAX = 30
const STORE_KEY = 'witnessed'

/**
 * Loads the stored state; undefined if there is none or it is malformed, because a user can change the
 * storage.
 */
function loadWitness(): WitnessState | undefined {
  const value = valueOfJson(persistentStore.read(STORE_KEY))
  return isWitnessed(value) ? value : undefined
}

function isWitnessed(value: unknown): value is WitnessState {
  if (typeof value !== 'object' || value === null) return false
  const { strand, publicKey, checkpoint, visits } = { ...none, ...value }
  const isText = [strand, publicKey, checkpoint].every((one) => typeof one === 'string' && one !== '')
  return isText && Array.isArray(visits) && visits.every(isVisit)
}

function isVisit(value: unknown): value is Visit {
  if (typeof value !== 'object' || value === null) return false
  const { size, atMs } = { size: undefined, atMs: undefined, ...value }
  return Number.isSafeInteger(size) && Number.isFinite(atMs)
}

const none = { strand: '', publicKey: '', checkpoint: '', visits: [] }

/** Removes the stored state, so that the next check starts again. */
export function clearWitness(): void {
  persistentStore.write(STORE_KEY, undefined)
}

/**
 * Checks that the log's checkpoint is signed, and that the log extends the one that this browser has seen
 * last. Stores the new checkpoint only if both hold, so that the old one remains as evidence.
 * @throws Error if the browser has no Ed25519; ServiceError 404 if the service has no log
 */
export async function witness(
  service: ServiceClient,
  { nowMs, signal }: { nowMs: number; signal: AbortSignal },
): Promise<WitnessResult> {
  await requireEd25519()
  const checkpoint = await service.log.checkpoint({ signal })
  const { strand, public_key: publicKey } = await service.agent(logAgent).status({ signal })
  const before = loadWitness()
  const size = parseCheckpoint(checkpoint)?.size ?? 0
  const found = await checkLog(service, { checkpoint, strand, publicKey, before, signal })
  if (found.outcome === 'failed') return { verdict: found, kept: before, checkpoint }
  const visits = [{ size, atMs: nowMs }, ...(before?.visits ?? [])].slice(0, VISITS_MAX)
  const kept: WitnessState = { strand, publicKey, checkpoint, visits }
  persistentStore.write(STORE_KEY, JSON.stringify(kept))
  return { verdict: found, kept, checkpoint }
}

async function checkLog(
  service: ServiceClient,
  given: {
    checkpoint: string
    strand: string
    publicKey: string
    before: WitnessState | undefined
    signal: AbortSignal
  },
): Promise<Verdict> {
  const { checkpoint, strand, publicKey, before, signal } = given
  const current = await runAsync(verifyCheckpoint(checkpoint, publicKey), webCryptoJobs())
  if (current === undefined) return fails('the checkpoint is not signed with the key of the log')
  if (strandOf(current) !== strand) return fails('the checkpoint belongs to another strand than the log')
  const trust = trustIn(strand, publicKey)
  if (trust.fault !== undefined) return fails(trust.fault)
  const records = recordsText(current.size - 1)
  if (before === undefined) {
    const text = `the checkpoint of ${records} is signed with the log’s key. This browser has stored it`
    return holds(text, trust.isKeyTrusted)
  }
  if (before.strand !== strand)
    return fails('this log has another strand than the log that this browser has seen at this address')
  if (before.publicKey !== publicKey)
    return fails(
      'the key of the log has changed. Check the whole log: it shows whether the previous key signed the change',
    )
  const [last] = before.visits
  const seen = parseCheckpoint(before.checkpoint)?.size ?? 0
  if (current.size < seen)
    return fails(
      `the log was truncated: it had ${recordsText(seen - 1)} and now has ${recordsText(current.size - 1)}`,
    )
  const proof = await service.log.consistency(seen, { to: current.size, signal })
  // The proof has to lead to the checkpoint that is stored afterwards.
  const grown = await verifyConsistency(
    before.checkpoint,
    { path: proof.path, checkpoint },
    { publicKey, strand },
  )
  if (!grown.ok) return fails(`the log does not extend the one that this browser has seen: ${grown.reason}`)
  const since = last === undefined ? '' : ` since ${timeText(last.atMs)}`
  const added = grown.to - grown.from
  // This browser knows the key from an earlier visit.
  return holds(
    `the log of ${records} begins with the ${recordsText(grown.from - 1)} that this browser has seen, ${countText(added)} added${since}`,
    true,
  )
}
