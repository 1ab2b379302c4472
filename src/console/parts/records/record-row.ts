import {
  type FoundRecord,
  NotFoundError,
  type NucleotideRecord,
  type ServiceClient,
} from '../../../client/index.js'
import { textLines } from '../../../client/text-lines.js'
import { parseManifest } from '../../../proof/export-lines.js'
import { bodyText, readLineText, type ReadRecord } from '../../../proof/record.js'
import { msOf } from '../format.js'
import { objectOfJson } from '../json.js'

/** Oldest or newest records first. */
export type RecordOrder = 'asc' | 'desc'

export type RecordState = 'active' | 'deleted' | 'erased' | 'withheld'

/** A record as lists show it. */
export interface RecordRow {
  seq: number
  type: string
  ms: number
  hlc: string
  /** The text of the body; undefined if it is erased or withheld. */
  body: string | undefined
  /** The members of the body; empty if the body is not an object. */
  members: Record<string, unknown>
  state: RecordState
  /** The seq of the record whose signature covers this one; undefined if the record has its own signature. */
  sealedBy: number | undefined
}

/** A range of records from an export. */
interface StrandPart {
  rows: RecordRow[]
  /** The current key at the first record. */
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
 * Reads a range of a strand from an export, which has all records, including deleted and erased ones. An
 * export extends to the record that seals its last one; records after `toSeq` are dropped.
 * @throws Error naming the malformed line
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
    if (typeof text !== 'string') throw new Error(`Line ${line} of the export is malformed: ${text.reason}`)
    if (line === 1) {
      const manifest = parseManifest(text)
      if (manifest === undefined) throw new Error('The first line of the export is not a manifest')
      part.publicKey = manifest.publicKey
      part.strand = manifest.strand
      continue
    }
    const read = readLineText(text)
    if (read === undefined)
      throw new Error(`Line ${line} of the export, record ${range.fromSeq + line - 2}, is malformed`)
    if (!('record' in read)) continue
    if (range.fromSeq + part.records.length > range.toSeq) continue
    part.records.push(read.record)
    const row = rowOf(read.record)
    if (row !== undefined) part.rows.push(row)
  }
  return part
}

/** Reads one page of a strand, newest first, with the state of each record. */
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
 * Marks the deleted records of a range.
 * @param listed consecutive records in the order of the strand; `asOf` is an HLC after which records are
 * ignored
 */
export async function markDeleted(
  service: ServiceClient,
  agent: string,
  listed: { rows: readonly RecordRow[]; asOf?: string; signal: AbortSignal },
): Promise<void> {
  const seen = await seqsInQueries(service, agent, listed)
  for (const row of listed.rows) {
    // The server's own records are never deleted, but users' queries omit them.
    const canBe = row.state === 'active' && !/^(sys|auth|edge)\//.test(row.type)
    if (canBe && !seen.has(row.seq)) row.state = 'deleted'
  }
}

/** The seqs that a query returns. It omits only deleted and erased records. */
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

/** The row of a record from an export; undefined if its header is malformed. */
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

/** The row of a record from a query. */
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

/** The digits of a hash as copied or shown: whole, or the first 8 or more; undefined for any other text. */
export function hashDigits(text: string): string | undefined {
  return /^(?:sha256:)?([0-9a-f]{8,64})…?$/.exec(text.trim().toLowerCase())?.[1]
}

/** The records that the key may read and whose hash begins with the digits, newest first. */
export async function findRecords(
  service: ServiceClient,
  digits: string,
  signal: AbortSignal,
): Promise<FoundRecord[]> {
  try {
    return await service.findRecords(digits, { signal })
  } catch (error) {
    if (error instanceof NotFoundError) return []
    throw error
  }
}
