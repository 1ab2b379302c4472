import { DatabaseError } from 'pg'
import { asBuffer } from '../base/bytes.js'
import { limits } from '../base/limits.js'

/** One ingest record on its way to PostgreSQL (contract.md 5, External database for ingest). */
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

/** A row that PostgreSQL does not take, and why. */
export interface RefusedRow {
  row: SinkRow
  /** SQLSTATE and PostgreSQL's own words. */
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
 * Classes of SQLSTATE (PostgreSQL manual, Appendix A) that blame what is in a row and not the state of the server:
 * data exceptions, constraints, program limits, WITH CHECK OPTION, and what a trigger raises.
 */
const rowFaults = /^(22|23|44|54|P0001)/

/**
 * Why PostgreSQL refuses a row for good.
 * @returns undefined for any other failure, after which the same rows may be taken
 */
export function refusalReason(error: unknown): string | undefined {
  if (!(error instanceof DatabaseError) || error.code === undefined) return undefined
  if (!rowFaults.test(error.code)) return undefined
  const reason = `${error.code}: ${error.message}${error.detail === undefined ? '' : ` (${error.detail})`}`
  return reason.replaceAll('\0', '').slice(0, limits.sinkReasonCharsMax)
}
