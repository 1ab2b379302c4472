import { DatabaseError } from 'pg'
import { asBuffer } from '../base/bytes.js'
import { describeDatabase, meaningOf } from './postgres-trouble.js'

/** One ingest record on its way to PostgreSQL (docs/adr/0013-postgres-sink.md). */
export interface SinkRow {
  /** 64 hex digits. */
  contentHash: string
  agent: string
  seq: number
  /** `<12 hex>-<4 hex>`. */
  timestampHlc: string
  type: string
  /** Canonical JSON text, UTF-8; undefined where it was erased. */
  body: Uint8Array | undefined
}

/** A row that PostgreSQL refuses, and why. */
export interface RefusedRow {
  row: SinkRow
  /** The SQLSTATE. PostgreSQL's message can quote the row, and would still be there after an erasure. */
  reason: string
}

/** The columns of a row, in the order of `copyText`. */
export const columns = 'content_hash, agent, seq, timestamp_hlc, type, body'

/** Rows in COPY's text format (PostgreSQL manual, COPY, Text Format). */
export function copyText(rows: readonly SinkRow[]): Buffer {
  return Buffer.from(rows.map(copyLine).join(''))
}

function copyLine({ contentHash, agent, seq, timestampHlc, type, body }: SinkRow): string {
  const json = body === undefined ? '\\N' : escaped(asBuffer(body).toString('utf8'))
  return `${contentHash}\t${escaped(agent)}\t${seq}\t${timestampHlc}\t${escaped(type)}\t${json}\n`
}

/** Canonical JSON and names have no raw control characters, but a row must not break if one ever does. */
function escaped(text: string): string {
  return text.replace(/[\\\t\n\r]/g, (character) => escapes[character] ?? character)
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

/**
 * Classes of SQLSTATE (PostgreSQL manual, Appendix A) that are about the contents of a row and not about the state of
 * the server: data exceptions, constraints, program limits, WITH CHECK OPTION, and what a trigger raises.
 */
const rowFaults = /^(22|23|44|54|P0001)/

/**
 * Classes about the connection, the server or its disk: other rows would fail as well. 42 is not among them, since the
 * statements of a trigger can depend on a row.
 */
const serverFaults = /^(08|25|26|28|3B|3D|40|53[134]|55|57P|58|XX00[12])/

/**
 * The SQLSTATE by which PostgreSQL refuses a row for good.
 * @returns undefined for any other failure, after which the same rows may be accepted
 */
export function refusalCode(error: unknown): string | undefined {
  const code = sqlState(error)
  return code !== undefined && rowFaults.test(code) ? code : undefined
}

/** The SQLSTATE of a failure that may be about a row, although it does not say so. */
export function suspectCode(error: unknown): string | undefined {
  const code = sqlState(error)
  return code !== undefined && !serverFaults.test(code) ? code : undefined
}

/** The text of a failure for the log: never PostgreSQL's message, which can quote rows, but what its SQLSTATE means. */
export function failureText(error: unknown): string {
  const code = sqlState(error)
  if (code === undefined) return describeDatabase(error)
  const meaning = meaningOf(code)
  return meaning === undefined ? `SQLSTATE ${code}` : `${meaning} (SQLSTATE ${code})`
}

function sqlState(error: unknown): string | undefined {
  return error instanceof DatabaseError ? error.code : undefined
}
