import {
  type AsOfResponse,
  type ServiceClient,
  verifyAsOf,
  verifyConsistency,
} from '../../../client/index.js'
import { requireEd25519, webCryptoJobs } from '../../../client/webcrypto.js'
import { runLater } from '../../../proof/job.js'
import { type ReadRecord, examineRecord, bodyMembers } from '../../../proof/record.js'
import { explain } from '../../parts/explain.js'
import { counted, exactTimeText, keyDigits } from '../../parts/format.js'
import { unboundFault } from '../../parts/proof/check-strand.js'
import { type KeptCheck, keptCheck, trustedKey } from '../../parts/proof/kept.js'
import { markDeleted, readStrandPart, type RecordRow, rowOf } from '../../parts/records/record-row.js'
import type { Verdict } from '../../parts/result.js'

/** Records that are listed of a moment: its last ones. */
export const LISTED_RECORDS = 50

/** A moment of a strand: the one at which a record had become its last. */
export interface MomentAsked {
  service: ServiceClient
  agent: string
  strand: string
  /** The last record of the moment. */
  seq: number
  /** The last record of the strand, as far as is known. */
  headSeq: number
  /** The moment that was typed, in Unix milliseconds; undefined where the record was chosen. */
  askedMs: number | undefined
  signal: AbortSignal
}

/** A strand as it was. */
export interface MomentRead {
  seq: number
  zone: string | null
  chainHead: string
  /** When its last record was written, in Unix milliseconds. */
  ms: number
  /** When the next one was written; undefined where there is none. */
  nextMs: number | undefined
  /** Its last records, newest first, with what had become of them by then. */
  rows: RecordRow[]
  check: MomentCheck
}

/** What the check of a moment found. */
export interface MomentCheck {
  verdict: Verdict
  /** Whether the key that signed is the one that the reader trusts, or one that it led to. */
  isKeyTrusted: boolean
  /** Whether the zone, and which records are deleted, follow from the records that were read: all of a short strand. */
  isHistoryRead: boolean
  /** The check of the whole strand that the moment was compared with. */
  kept: KeptCheck | undefined
}

/**
 * Reads a strand as it was, and checks it.
 * @throws what the service answers; Error for records that cannot be read
 */
export async function readMoment(asked: MomentAsked): Promise<MomentRead> {
  const { service, agent, seq, headSeq, signal } = asked
  // Beyond the head that is known there may be newer records by now.
  const toSeq = Math.min(seq + 1, Math.max(seq, headSeq))
  const range = { fromSeq: Math.max(0, seq - LISTED_RECORDS + 1), toSeq, signal }
  const { records } = await readStrandPart(service, agent, range)
  const rows = records.slice(0, seq - range.fromSeq + 1).flatMap((record) => rowOf(record) ?? [])
  const last = rows.at(-1)
  if (last === undefined) throw new Error(`The server does not send record ${seq}`)
  const handle = service.agent<unknown>(agent)
  const [answer] = await Promise.all([
    // Its page begins with the oldest records; those that are listed are the newest.
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
    check: await checkMoment(asked, { answer, records, rows, fromSeq: range.fromSeq }),
  }
}

/**
 * The last record at a moment; undefined before the strand began.
 * @throws what the service answers
 */
export async function seqAt(
  service: ServiceClient,
  agent: string,
  at: { ms: number; signal: AbortSignal },
): Promise<number | undefined> {
  const { chain_head: head, record_count: seq } = await service
    .agent<unknown>(agent)
    .asOf(new Date(at.ms), { limit: 1, signal: at.signal })
  return head === null ? undefined : seq
}

interface Answered {
  answer: AsOfResponse<unknown>
  /** Records in a row, up to the one behind the last of the moment. */
  records: readonly ReadRecord[]
  /** Those that are listed, in the order of the strand, with what the server says became of them. */
  rows: readonly RecordRow[]
  fromSeq: number
}

async function checkMoment(asked: MomentAsked, answered: Answered): Promise<MomentCheck> {
  const { service, agent, strand, seq, signal } = asked
  const trusted = trustedKey(strand)
  const kept = keptCheck(strand)
  const { answer, records, rows, fromSeq } = answered
  const history = historyOf(records.slice(0, seq - fromSeq + 1))
  const checked = { isKeyTrusted: false, isHistoryRead: history !== undefined, kept }
  const not = (reason: string): MomentCheck => ({
    ...checked,
    verdict: { ok: false, text: `Not verified: record ${seq} of ${agent}: ${reason}` },
  })
  try {
    await requireEd25519()
    const told = history && historyFault(history, { zone: answer.zone, rows })
    const linked = (await linkFault(asked, answered)) ?? told
    if (linked !== undefined) return not(linked)
    // The key in force now signs checkpoints of all moments, and may be newer than the page.
    const { public_key: publicKey, record_count: last } = await service.agent(agent).status({ signal })
    if (kept !== undefined && last + 1 < kept.size)
      return not(
        `the tail of the strand was cut: ${counted(kept.size, 'record')} were checked here before, ${last + 1} are there now`,
      )
    const isKeyTrusted =
      trusted !== '' && (publicKey === trusted || (kept?.trusted === trusted && kept.publicKey === publicKey))
    if (trusted !== '' && !isKeyTrusted)
      return not(
        `the key in force, …${keyDigits(publicKey)}, is not the one that you trust. If that was changed since, check the whole strand first`,
      )
    const signed = await signedFault(asked, { ...answered, publicKey, kept })
    return signed === undefined
      ? { ...checked, isKeyTrusted, verdict: { ok: true, text: verifiedText(agent, seq, publicKey) } }
      : not(signed)
  } catch (error) {
    if (signal.aborted) throw error
    return not(explain(error))
  }
}

function verifiedText(agent: string, seq: number, publicKey: string): string {
  return (
    `Verified: record ${seq} was the last of ${agent} then. Key …${keyDigits(publicKey)} has signed the tree of its ` +
    `${counted(seq + 1, 'record')}, and the strand of today begins with ${seq === 0 ? 'it' : 'them'}`
  )
}

/** What is wrong with the records themselves, and with their times; undefined where each leads to the next. */
async function linkFault(
  { strand, seq, askedMs }: MomentAsked,
  { answer, records, fromSeq }: Answered,
): Promise<string | undefined> {
  const jobs = webCryptoJobs()
  let before: string | undefined
  for (const [at, record] of records.entries()) {
    const { header, content } = record
    const own = fromSeq + at
    if (header?.seq !== own) return `the server sent another record in place of record ${own}`
    if (own > 0 && header.strand !== strand) return `the header of record ${own} names another strand`
    if (before !== undefined && header.prev !== before)
      return `record ${own} does not follow on the one before it`
    const { hash, bodyMatches } = await runLater(examineRecord(record, { strand, signature: false }), jobs)
    if (content !== undefined && !bodyMatches)
      return `the body of record ${own} is not the one that its header commits to`
    if (own === seq && answer.chain_head !== hash) return 'the server names another head for this moment'
    before = hash
  }
  // Of such a record the server shows no path, though it shows the record itself.
  if (records[seq - fromSeq]?.withheld === true)
    return 'it is withheld from you, and so is its path. Go to a record that you may read'
  if (answer.record_count !== seq) return `the server counts ${answer.record_count} records behind the first`
  return askedMs === undefined ? undefined : clockFault(askedMs, { records, at: seq - fromSeq })
}

/** Whether the signed clocks put the moment that was typed between the record and the next one. */
function clockFault(
  askedMs: number,
  { records, at }: { records: readonly ReadRecord[]; at: number },
): string | undefined {
  const clocks = [records[at], records[at + 1]].map((record) => record && rowOf(record)?.ms)
  const [ms = Infinity, nextMs = Infinity] = clocks
  return ms <= askedMs && askedMs < nextMs
    ? undefined
    : `by the clocks of the records it was not the last one at ${exactTimeText(askedMs)}`
}

/** What is wrong with the signed tree of the moment, with the strand of now, or with one that was checked earlier. */
async function signedFault(
  { service, agent, strand, seq, signal }: MomentAsked,
  { answer, publicKey, kept }: Answered & { publicKey: string; kept: KeptCheck | undefined },
): Promise<string | undefined> {
  const found = await verifyAsOf(answer, { publicKey, strand })
  if (!found.ok) return found.reason
  const { checkpoint, chain_head: chainHead } = answer
  if (checkpoint === null || chainHead === null) return 'The answer has no checkpoint'
  const place = { service, agent, strand, signal }
  const unbound = await unboundFault(place, { chainHead, lastSeq: seq, publicKey, checkpoint })
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
  return grown.ok ? undefined : `it does not fit the strand that this browser checked whole: ${grown.reason}`
}

/** What the signed records of the server say of a strand at their last one (docs/FORMAT.md, Mutations). */
interface History {
  zone: unknown
  /** Seqs of the records that are deleted. */
  deleted: ReadonlySet<unknown>
}

/** Reads the history of a strand; undefined where it does not begin at genesis, or a record of it is withheld. */
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

/** What the server says otherwise than the signed records do; undefined where they agree. */
function historyFault(
  { zone, deleted }: History,
  said: { zone: string | null; rows: readonly RecordRow[] },
): string | undefined {
  if (said.zone !== zone) return `the server names the zone ${said.zone}, the records name ${String(zone)}`
  const other = said.rows.find(
    ({ seq, state }) =>
      (state === 'deleted' && !deleted.has(seq)) || (state === 'active' && deleted.has(seq)),
  )
  if (other === undefined) return undefined
  const is = other.state === 'deleted' ? 'was' : 'was not'
  return `the server says that record ${other.seq} ${is} deleted then, and the records say otherwise`
}
