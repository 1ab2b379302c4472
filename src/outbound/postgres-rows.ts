import { DatabaseError } from 'pg'
import { asBuffer } from '../base/bytes.js'
import { describeDatabase, meaningOf } from './postgres-errors.js'

/** An ingested record for PostgreSQL (docs/adr/0013-postgres-sink.md). */
export interface SinkRow {
  /** 64 hex digits. */
  contentHash: string
  agent: string
  seq: number
  /** `<12 hex>-<4 hex>`. */
  timestampHlc: string
  type: string
  /** Canonical JSON text, UTF-8; undefined if it was erased. */
  body: Uint8Array | undefined
}

export interface RefusedRow {
  row: SinkRow
  /** The SQLSTATE. The message of PostgreSQL can quote the row, and would remain after an erasure. */
  reason: string
}

/** The columns of a row, in the order of `copyText`. */
export const columns = 'content_hash, agent, seq, timestamp_hlc, type, body'

/** Rows in the text format of COPY (PostgreSQL manual, COPY, Text Format). */
export function copyText(rows: readonly SinkRow[]): Buffer {
  return Buffer.from(rows.map(copyLine).join(''))
}

function copyLine({ contentHash, agent, seq, timestampHlc, type, body }: SinkRow): string {
  const json = body === undefined ? '\\N' : escaped(asBuffer(body).toString('utf8'))
  return `${contentHash}\t${escaped(agent)}\t${seq}\t${timestampHlc}\t${escaped(type)}\t${json}\n`
}

/** Canonical JSON and names have no raw control characters; escaping them too is a precaution. */
function escaped(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (character) => escapes[character] ?? character)
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

/**
 * SQLSTATE classes about the content of a row: data exceptions, constraints, program limits, WITH CHECK
 * OPTION, and errors that a trigger raises (PostgreSQL manual, Appendix A).
 */
const rowFaults = /^(22(?!00H)|23|44|54|P0001)/

/**
 * SQLSTATE classes about the connection, the server, its load or its disk, with which the same row may be
 * accepted later (docs/adr/0013-postgres-sink.md, A refused row); 2200H is an exhausted sequence. 42 and XX000 are not among them, because
 * the statements of a trigger can depend on a row.
 */
const passingFaults = /^(08|2200H|25|26|28|2D|3B|3D|40|53|55|57|58|72|F0|HV|XX00[12])/

/** A statement that was too slow or too large for the server, or that waited for a lock. */
const tooMuch = /^(57014|53200)$/

/**
 * The SQLSTATE with which PostgreSQL permanently refuses a row; undefined for failures that may be temporary.
 */
export function refusalCode(error: unknown): string | undefined {
  const code = sqlState(error)
  return code !== undefined && rowFaults.test(code) ? code : undefined
}

/** The SQLSTATE of a failure that may have been caused by a row. */
export function suspectCode(error: unknown): string | undefined {
  const code = sqlState(error)
  return code !== undefined && !passingFaults.test(code) ? code : undefined
}

/** Whether fewer rows in each statement may help against a failure. */
export function needsFewerRows(error: unknown): boolean {
  return tooMuch.test(sqlState(error) ?? '') || suspectCode(error) !== undefined
}

/**
 * The text of a failure for the log: the meaning of its SQLSTATE, without the message, which can quote rows.
 */
export function failureText(error: unknown): string {
  const code = sqlState(error)
  if (code === undefined) return describeDatabase(error)
  const meaning = meaningOf(code)
  return meaning === undefined ? `SQLSTATE ${code}` : `${meaning} (SQLSTATE ${code})`
}

function sqlState(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined
}
