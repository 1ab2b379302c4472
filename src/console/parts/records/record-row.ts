import type { NucleotideRecord, ServiceClient } from '../../../client/index.js'
import { textLines } from '../../../client/text-lines.js'
import { parseManifest } from '../../../proof/export-lines.js'
import { type ReadRecord, bodyText, readLineText } from '../../../proof/record.js'
import { msOf } from '../format.js'
import { objectOfJson } from '../json.js'

/** What became of a record. */
export type RecordState = 'active' | 'deleted' | 'erased' | 'withheld'

/** A record as lists show it. */
export interface RecordRow {
  seq: number
  type: string
  ms: number
  hlc: string
  /** The body's text; undefined where it is erased or withheld. */
  body: string | undefined
  /** Its members, where it is an object. */
  members: Record<string, unknown>
  state: RecordState
  /** Seq of the signed record that covers this one; undefined where it has a signature of its own. */
  sealedBy: number | undefined
}

/** A part of a strand, and how many records the whole has, genesis counted. */
export interface StrandPart {
  rows: RecordRow[]
  /** Key in force at the first of them. */
  publicKey: string
  strand: string
  records: ReadRecord[]
}

/** A range of seqs, both ends included. */
export interface SeqRange {
  fromSeq: number
  toSeq: number
}

/**
 * Reads a part of a strand from an export, which has every record, also deleted and erased ones. An export that ends with
 * a sealed record goes on up to the one that seals it: what lies behind `toSeq` is left out.
 * @throws Error naming the line that cannot be read
 */
export async function readStrandPart(
  service: ServiceClient,
  agent: string,
  range: SeqRange & { signal: AbortSignal },
): Promise<StrandPart> {
  const stream = await service.exportStrand({ agent, ...range })
  const part: StrandPart = { rows: [], publicKey: '', strand: '', records: [] }
  let line = 0
  for await (const text of textLines(stream)) {
    line += 1
    if (typeof text !== 'string') throw new Error(`Line ${line} of the export cannot be read: ${text.reason}`)
    if (line === 1) {
      const manifest = parseManifest(text)
      if (manifest === undefined) throw new Error('The first line of the export is no manifest')
      part.publicKey = manifest.publicKey
      part.strand = manifest.strand
      continue
    }
    const read = readLineText(text)
    if (read === undefined)
      throw new Error(`Line ${line} of the export, record ${range.fromSeq + line - 2}, cannot be read`)
    if (!('record' in read)) continue
    if (range.fromSeq + part.records.length > range.toSeq) continue
    part.records.push(read.record)
    const row = rowOf(read.record)
    if (row !== undefined) part.rows.push(row)
  }
  return part
}

/** One page of a strand, newest first, with what became of each record. */
export async function readRows(
  service: ServiceClient,
  agent: string,
  range: SeqRange & { signal: AbortSignal },
): Promise<RecordRow[]> {
  const { rows } = await readStrandPart(service, agent, range)
  await markDeleted(service, agent, { rows, signal: range.signal })
  return rows.reverse()
}

/**
 * Finds out which of some records in a row are deleted.
 * @param listed in the order of the strand; `asOf` is the clock of the last record that counts, all do unless given
 */
export async function markDeleted(
  service: ServiceClient,
  agent: string,
  listed: { rows: readonly RecordRow[]; asOf?: string; signal: AbortSignal },
): Promise<void> {
  const seen = await seqsInQueries(service, agent, listed)
  for (const row of listed.rows) {
    // Records of the server are never deleted; queries of users leave them out all the same.
    const canBe = row.state === 'active' && !/^(sys|auth|edge)\//.test(row.type)
    if (canBe && !seen.has(row.seq)) row.state = 'deleted'
  }
}

/** Queries leave deleted records out, and nothing else but the erased ones: what they leave out is deleted. */
async function seqsInQueries(
  service: ServiceClient,
  agent: string,
  { rows, asOf, signal }: { rows: readonly RecordRow[]; asOf?: string; signal: AbortSignal },
): Promise<ReadonlySet<number>> {
  const [first] = rows
  const last = rows.at(-1)
  const seen = new Set<number>()
  if (first === undefined || last === undefined) return seen
  let cursor: string | undefined
  do {
    const page = await service.agent(agent).query(
      {
        type: 'time_range',
        from_ts: first.hlc,
        ...(asOf !== undefined && { to_ts: asOf }),
        types: ['*'],
        order: 'asc',
        limit: rows.length,
        ...(cursor !== undefined && { cursor }),
      },
      { signal },
    )
    for (const { seq } of page.records) seen.add(seq)
    cursor = page.next_cursor ?? undefined
    if ((page.records.at(-1)?.seq ?? -1) >= last.seq) break
  } while (cursor !== undefined)
  return seen
}

/** A record of an export as lists show it; undefined where its header cannot be read. */
export function rowOf({ header, content, sealedBy, withheld }: ReadRecord): RecordRow | undefined {
  if (header === undefined) return undefined
  const body = content && bodyText(content)
  return {
    seq: header.seq,
    type: header.type,
    ms: msOf(header.hlc),
    hlc: header.hlc,
    body,
    members: objectOfJson(body) ?? {},
    state: withheld ? 'withheld' : body === undefined ? 'erased' : 'active',
    sealedBy,
  }
}

/** A record of a query's answer as lists show it. */
export function rowOfQuery(record: NucleotideRecord<unknown>): RecordRow {
  const body = JSON.stringify(record.payload)
  return {
    seq: record.seq,
    type: record.type,
    ms: msOf(record.timestamp_hlc),
    hlc: record.timestamp_hlc,
    body,
    members: objectOfJson(body) ?? {},
    state: record.erased ? 'erased' : record.deleted ? 'deleted' : 'active',
    sealedBy: record.sealed_by,
  }
}
