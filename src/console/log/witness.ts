import { type ServiceClient, verifyConsistency } from '../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../client/webcrypto.js'
import { runLater } from '../../proof/job.js'
import { parseCheckpoint, strandOf, verifyCheckpoint } from '../../proof/note.js'
import { counted, countText } from '../parts/format.js'
import { valueOfJson } from '../parts/json.js'
import type { Verdict } from '../parts/result.js'
import { logAgent } from '../parts/words.js'
import { lasting } from '../storage.js'

/** What this browser has seen of a server's log, the newest first. */
export interface Witnessed {
  /** The strand of the log, which names the server. */
  strand: string
  /** The key that has signed `checkpoint`; 64 hex digits. */
  publicKey: string
  checkpoint: string
  visits: readonly Visit[]
}

/** One look at the log that held. */
export interface Visit {
  /** Records that the log had, genesis counted. */
  size: number
  atMs: number
}

/** What a look at the log found. */
export interface Witnessing {
  verdict: Verdict
  /** What is kept from now on; where the log does not hold, what was kept before. */
  kept: Witnessed | undefined
  /** The checkpoint that the server gave. */
  checkpoint: string
}

/** Visits that are kept: enough to see how it grew. */
const VISITS_MAX = 30
const SHELF_NAME = 'witnessed'

/** What this browser keeps of the logs of this address. */
export function readWitnessed(): Witnessed | undefined {
  // The storage is the reader's, who may have changed it.
  const value = valueOfJson(lasting.read(SHELF_NAME))
  return isWitnessed(value) ? value : undefined
}

function isWitnessed(value: unknown): value is Witnessed {
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

/** Forgets what was kept, so that the next look begins anew. */
export function forgetWitnessed(): void {
  lasting.write(SHELF_NAME, undefined)
}

/**
 * Looks at the log: that its checkpoint is signed, and that it begins with the log that this browser has seen last. What
 * holds is kept; what does not is not, so that it can be shown to others.
 * @throws Error where the browser has no Ed25519; ServiceError, 404 where the service keeps no log
 */
export async function witness(
  service: ServiceClient,
  { nowMs, signal }: { nowMs: number; signal: AbortSignal },
): Promise<Witnessing> {
  await requireEd25519()
  const checkpoint = await service.log.checkpoint({ signal })
  const { strand, public_key: publicKey } = await service.agent(logAgent).status({ signal })
  const before = readWitnessed()
  const size = parseCheckpoint(checkpoint)?.size ?? 0
  const found = await look(service, { checkpoint, strand, publicKey, before, signal })
  if (!found.ok) return { verdict: found, kept: before, checkpoint }
  const visits = [{ size, atMs: nowMs }, ...(before?.visits ?? [])].slice(0, VISITS_MAX)
  const kept: Witnessed = { strand, publicKey, checkpoint, visits }
  lasting.write(SHELF_NAME, JSON.stringify(kept))
  return { verdict: found, kept, checkpoint }
}

async function look(
  service: ServiceClient,
  given: {
    checkpoint: string
    strand: string
    publicKey: string
    before: Witnessed | undefined
    signal: AbortSignal
  },
): Promise<Verdict> {
  const { checkpoint, strand, publicKey, before, signal } = given
  const not = (reason: string): Verdict => ({ ok: false, text: `Not verified: ${reason}` })
  const named = await runLater(verifyCheckpoint(checkpoint, publicKey), webCryptoJobs())
  if (named === undefined) return not('the checkpoint is not signed by the key of the log')
  if (strandOf(named) !== strand) return not('the checkpoint is of another strand than the log')
  const records = counted(named.size, 'record')
  if (before === undefined) {
    const text = `Verified: the checkpoint of ${records} is signed by the log’s key. This browser keeps it from now on`
    return { ok: true, text }
  }
  if (before.strand !== strand)
    return not('this is another log than the one that this browser has seen here: its strand is another')
  if (before.publicKey !== publicKey)
    return not(
      'the key of the log is another than before. Check the whole log, which shows whether it was handed over',
    )
  const [last] = before.visits
  const seen = parseCheckpoint(before.checkpoint)?.size ?? 0
  if (named.size < seen)
    return not(`the log was cut: it had ${counted(seen, 'record')}, and has ${countText(named.size)} now`)
  const proof = await service.log.consistency(seen, { to: named.size, signal })
  // The proof has to lead to the checkpoint that is kept afterwards, and to no other.
  const grown = await verifyConsistency(
    before.checkpoint,
    { path: proof.path, checkpoint },
    { publicKey, strand },
  )
  if (!grown.ok) return not(`the log is not the one that this browser has seen: ${grown.reason}`)
  const since = last === undefined ? '' : ` since ${new Date(last.atMs).toLocaleString()}`
  const added = grown.to - grown.from
  return {
    ok: true,
    text: `Verified: the log of ${records} begins with the ${countText(grown.from)} that this browser has seen, ${countText(added)} added${since}`,
  }
}
