import {
  type AsOfResponse,
  type ServiceClient,
  verifyAsOf,
  verifyConsistency,
} from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { runAsync } from '../../../proof/job.js'
import { type ReadRecord, examineRecord, bodyMembers } from '../../../proof/record.js'
import { explain } from '../../parts/explain.js'
import { exactTimeText, keyDigits, recordsText } from '../../parts/format.js'
import { inclusionFault } from '../../parts/proof/check-strand.js'
import { type StoredCheck, loadCheck, trustIn } from '../../parts/proof/stored-check.js'
import { markDeleted, readStrandPart, type RecordRow, rowOf } from '../../parts/records/record-row.js'
import { fails, holds, type Verdict } from '../../parts/result.js'

/** The number of records listed for a moment. */
export const LISTED_RECORDS = 50

/** The parameters of a moment: the time at which record `seq` was the last of the strand. */
interface MomentRequest {
  service: ServiceClient
  agent: string
  strand: string
  /** The last record of the moment. */
  seq: number
  /** The last known record of the strand. */
  headSeq: number
  /** The time that the user typed, in Unix milliseconds; undefined if the user chose a record. */
  typedMs: number | undefined
  signal: AbortSignal
}

export interface MomentRead {
  seq: number
  zone: string | null
  chainHead: string
  /** The time of its last record, in Unix milliseconds. */
  ms: number
  /** The time of the next record; undefined if there is none. */
  nextMs: number | undefined
  /** Its last records, newest first, with their state at the moment. */
  rows: RecordRow[]
  check: MomentCheck
}

export interface MomentCheck {
  verdict: Verdict
  /** Whether zone and deletions were derived from records: only if the whole strand was read. */
  isHistoryRead: boolean
  /** The stored check of the whole strand with which the moment was compared. */
  kept: StoredCheck | undefined
}

/**
 * Reads a strand at a moment, and checks it.
 * @throws errors of the service; Error for malformed records
 */
export async function readMoment(moment: MomentRequest): Promise<MomentRead> {
  const { service, agent, seq, headSeq, signal } = moment
  // The next record bounds the moment, but it is read only if it is known to exist.
  const toSeq = Math.min(seq + 1, Math.max(seq, headSeq))
  const range = { fromSeq: Math.max(0, seq - LISTED_RECORDS + 1), toSeq, signal }
  const { records } = await readStrandPart(service, agent, range)
  const rows = records.slice(0, seq - range.fromSeq + 1).flatMap((record) => rowOf(record) ?? [])
  const last = rows.at(-1)
  if (last === undefined) throw new Error(`The server did not send record ${seq}`)
  const handle = service.agent<unknown>(agent)
  const [answer] = await Promise.all([
    // Only the summary is used: the page starts with the oldest records, but the newest are listed.
    handle.asOf(last.hlc, { limit: 1, signal }),
    markDeleted(service, agent, { rows, asOf: last.hlc, signal }),
  ])
  const next = records[seq + 1 - range.fromSeq]
  return {
    seq,
    zone: answer.zone,
    chainHead: answer.chain_head ?? '',
    ms: last.ms,
    nextMs: next && rowOf(next)?.ms,
    rows: rows.toReversed(),
    check: await checkMoment(moment, { answer, records, rows, fromSeq: range.fromSeq }),
  }
}

/**
 * The seq of the last record at a time; -1 if the strand did not exist yet.
 * @throws errors of the service
 */
export async function seqAt(
  service: ServiceClient,
  agent: string,
  at: { ms: number; signal: AbortSignal },
): Promise<number> {
  const { chain_head: head, record_count: seq } = await service
    .agent<unknown>(agent)
    .asOf(new Date(at.ms), { limit: 1, signal: at.signal })
  return head === null ? -1 : seq
}

interface MomentAnswer {
  answer: AsOfResponse<unknown>
  /** Consecutive records, including the one after the moment. */
  records: readonly ReadRecord[]
  /** The listed records in the order of the strand, with their state as the server reports it. */
  rows: readonly RecordRow[]
  fromSeq: number
}

async function checkMoment(moment: MomentRequest, given: MomentAnswer): Promise<MomentCheck> {
  const { service, agent, strand, seq, signal } = moment
  const kept = loadCheck(strand)
  const { answer, records, rows, fromSeq } = given
  const history = historyOf(records.slice(0, seq - fromSeq + 1))
  const checked = { isHistoryRead: history !== undefined, kept }
  const not = (reason: string): MomentCheck => ({
    ...checked,
    verdict: fails(`record ${seq} of ${agent}: ${reason}`),
  })
  try {
    await requireEd25519()
    const contradiction = history && historyFault(history, { zone: answer.zone, rows })
    const linked = (await linkFault(moment, given)) ?? contradiction
    if (linked !== undefined) return not(linked)
    // The current key signs the checkpoints of all moments, and may be newer than the page.
    const { public_key: publicKey, record_count: last } = await service.agent(agent).status({ signal })
    if (kept !== undefined && last + 1 < kept.size)
      return not(
        `the strand was truncated: ${recordsText(kept.size - 1)} were checked in this browser before, it now has ${recordsText(last)}`,
      )
    const trust = trustIn(strand, publicKey)
    if (trust.fault !== undefined) return not(trust.fault)
    const signed = await signedFault(moment, { ...given, publicKey, kept })
    return signed === undefined
      ? { ...checked, verdict: holds(provedText(agent, seq, publicKey), trust.isKeyTrusted) }
      : not(signed)
  } catch (error) {
    if (signal.aborted) throw error
    return not(explain(error))
  }
}

function provedText(agent: string, seq: number, publicKey: string): string {
  return (
    `record ${seq} was the last record of ${agent} at that time. Key …${keyDigits(publicKey)} signed the tree ` +
    `of its ${recordsText(seq)}, which the current strand extends`
  )
}

/**
 * Checks the links between the records, their bodies and their times.
 * @returns the fault; undefined if there is none
 */
async function linkFault(
  { strand, seq, typedMs }: MomentRequest,
  { answer, records, fromSeq }: MomentAnswer,
): Promise<string | undefined> {
  const jobs = webCryptoJobs()
  let before: string | undefined
  for (const [at, record] of records.entries()) {
    const { header, content } = record
    const own = fromSeq + at
    if (header?.seq !== own) return `the server sent another record instead of record ${own}`
    if (own > 0 && header.strand !== strand) return `the header of record ${own} names another strand`
    if (before !== undefined && header.prev !== before)
      return `record ${own} does not link to its predecessor`
    const { hash, bodyMatches } = await runAsync(examineRecord(record, { strand, signature: false }), jobs)
    if (content !== undefined && !bodyMatches)
      return `the body of record ${own} does not match the commitment in its header`
    if (own === seq && answer.chain_head !== hash)
      return 'the server reports another chain head for this moment'
    before = hash
  }
  // For a withheld record the server sends the header but no inclusion proof.
  if (records[seq - fromSeq]?.withheld === true)
    return 'the record and its proof are withheld from you. Choose a record that you can read'
  if (answer.record_count !== seq)
    return `the server reports ${answer.record_count} records after the genesis instead of ${seq}`
  return typedMs === undefined ? undefined : clockFault(typedMs, { records, at: seq - fromSeq })
}

/** Checks that the typed time is between the signed clocks of the record and of the next one. */
function clockFault(
  typedMs: number,
  { records, at }: { records: readonly ReadRecord[]; at: number },
): string | undefined {
  const clocks = [records[at], records[at + 1]].map((record) => record && rowOf(record)?.ms)
  const [ms = Infinity, nextMs = Infinity] = clocks
  return ms <= typedMs && typedMs < nextMs
    ? undefined
    : `according to the clocks of the records, it was not the last record at ${exactTimeText(typedMs)}`
}

/**
 * Checks the signed tree of the moment against the current strand and the stored check.
 * @returns the fault, if any
 */
async function signedFault(
  { service, agent, strand, seq, signal }: MomentRequest,
  { answer, publicKey, kept }: MomentAnswer & { publicKey: string; kept: StoredCheck | undefined },
): Promise<string | undefined> {
  const found = await verifyAsOf(answer, { publicKey, strand })
  if (!found.ok) return found.reason
  const { checkpoint, chain_head: chainHead } = answer
  if (checkpoint === null || chainHead === null) return 'The answer has no checkpoint'
  const context = { service, agent, strand, signal }
  const unbound = await inclusionFault(context, { chainHead, lastSeq: seq, publicKey, checkpoint })
  if (unbound !== undefined || kept === undefined) return unbound
  const size = seq + 1
  const isOlder = size <= kept.size
  const [from, to] = isOlder ? [size, kept.size] : [kept.size, size]
  const { path } = await service.consistency(agent, from, { to, signal })
  const grown = await verifyConsistency(
    isOlder ? checkpoint : kept.checkpoint,
    { path, checkpoint: isOlder ? kept.checkpoint : checkpoint },
    {
      publicKey: isOlder ? kept.publicKey : publicKey,
      keptKey: isOlder ? publicKey : kept.publicKey,
      strand,
    },
  )
  return grown.ok ? undefined : `it does not match the strand that this browser has checked: ${grown.reason}`
}

/** The state of a strand, derived from its sys/ records (docs/FORMAT.md, Mutations). */
interface History {
  zone: unknown
  /** The seqs of deleted records. */
  deleted: ReadonlySet<unknown>
}

/** Derives the history; undefined if the records do not start at genesis, or a sys/ record is withheld. */
function historyOf(records: readonly ReadRecord[]): History | undefined {
  if (records[0]?.header?.seq !== 0) return undefined
  let zone: unknown
  const deleted = new Set<unknown>()
  for (const { header, content } of records) {
    if (header?.type.startsWith('sys/') !== true) continue
    if (content === undefined) return undefined
    const body = bodyMembers(content)
    if (header.type === 'sys/genesis' || header.type === 'sys/zone') zone = body['zone']
    else if (header.type === 'sys/tombstone') deleted.add(body['target_seq'])
    else if (header.type === 'sys/restore') deleted.delete(body['target_seq'])
  }
  return { zone, deleted }
}

/** Compares the server's report with the history. @returns the first difference; undefined if they agree */
function historyFault(
  { zone, deleted }: History,
  reported: { zone: string | null; rows: readonly RecordRow[] },
): string | undefined {
  if (reported.zone !== zone)
    return `the server reports zone ${reported.zone}, but the records say ${String(zone)}`
  const other = reported.rows.find(
    ({ seq, state }) =>
      (state === 'deleted' && !deleted.has(seq)) || (state === 'active' && deleted.has(seq)),
  )
  if (other === undefined) return undefined
  const state = other.state === 'deleted' ? 'deleted' : 'not deleted'
  return `the server reports record ${other.seq} as ${state} at this moment, but the records contradict this`
}
