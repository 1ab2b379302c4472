import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { asBuffer } from '../../../src/base/bytes.js'
import type { Refusal } from '../../../src/base/errors.js'
import { limits } from '../../../src/base/limits/limits.js'
import { canonicalJson } from '../../../src/strand/json.js'
import { rejectedType } from '../../../src/strand/record-type.js'
import type { DraftRules } from '../drafts.js'
import type { Draft } from '../../shard/commit-group.js'

interface RefusedLine {
  line: number
  bytes: Uint8Array
  /** The attributes of the CloudEvent in binary mode whose data is the line. */
  event?: Readonly<Record<string, string>> | undefined
}

/** The fewest bytes of a line that a part may hold: a line that would need smaller parts is not kept. */
const PART_BYTES_MIN = 256

/** A line is kept as base64 if texts would take more than this many times the records. */
const TEXT_FACTOR = 2

/**
 * The records in which a refused line is kept (docs/PIPELINES.md): one `{line, code, detail, text}`, with
 * `base64` instead of `text` if the line is not UTF-8. A longer line is split into parts, each with `part`,
 * `parts`, and the `bytes` and `sha256` of the whole line.
 * @returns no records if records are too small for a part, or the line needs more than
 * `limits.ingestRejectedPartsMax`
 */
export function rejectedDrafts(
  { line, bytes, event }: RefusedLine,
  { code, detail }: Refusal,
  rules: DraftRules,
): Draft[] {
  const raw = asBuffer(bytes)
  const common = { line, code, detail, ...(event !== undefined && { event }) }
  const { recordBytesMax, ingested = false } = rules
  const whole = raw.length > recordBytesMax ? undefined : bodyOf({ ...common, ...wholeOf(raw) })
  if (whole !== undefined && whole.length <= recordBytesMax) {
    return [{ type: rejectedType, body: whole, signing: rules.signing, ingested }]
  }
  const sha256 = createHash('sha256').update(raw).digest('hex')
  const ofPart = { ...common, bytes: raw.length, sha256 }
  const most = limits.ingestRejectedPartsMax
  const bytesMax = recordBytesMax - bodyOf({ ...ofPart, part: most, parts: most, base64: '' }).length
  const pieces = bytesMax < PART_BYTES_MIN ? [] : piecesOf(raw, { bytesMax, most })
  if (pieces.length > most) return []
  return pieces.map((piece, index) => ({
    type: rejectedType,
    body: bodyOf({ ...ofPart, part: index + 1, parts: pieces.length, ...piece }),
    // Each part is signed, because together they exceed what one signature may cover in an export.
    signing: 'record',
    ingested,
  }))
}

function bodyOf(value: object): Buffer {
  return Buffer.from(canonicalJson(value))
}

type KeptText = { text: string } | { base64: string }

function wholeOf(raw: Buffer): KeptText {
  return isUtf8(raw) ? { text: raw.toString('utf8') } : { base64: raw.toString('base64') }
}

/**
 * Splits a line into pieces whose JSON text has at most `bytesMax` bytes each: texts if at most `most` are
 * needed.
 */
function piecesOf(raw: Buffer, { bytesMax, most }: { bytesMax: number; most: number }): KeptText[] {
  const size = Math.floor(bytesMax / 4) * 3
  const count = Math.ceil(raw.length / size)
  const textsMax = Math.min(most, TEXT_FACTOR * count)
  const texts = isUtf8(raw) ? textsOf(raw, { bytesMax, most: textsMax }) : undefined
  if (texts !== undefined) return texts
  return Array.from({ length: count }, (_none, index) => ({
    base64: raw.toString('base64', index * size, (index + 1) * size),
  }))
}

/** Splits a line into texts; undefined if more than `most` are needed. */
function textsOf(
  raw: Buffer,
  { bytesMax, most }: { bytesMax: number; most: number },
): KeptText[] | undefined {
  const texts: KeptText[] = []
  let from = 0
  let bytes = 0
  /** The start of the current character. */
  let start = 0
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at] ?? 0
    if ((byte & 0xc0) !== 0x80) start = at
    bytes += escapedBytes[byte] ?? 0
    if (bytes <= bytesMax) continue
    texts.push({ text: raw.toString('utf8', from, start) })
    // The rest would be one text more.
    if (texts.length === most) return undefined
    from = start
    at = start - 1
    bytes = 0
  }
  texts.push({ text: raw.toString('utf8', from) })
  return texts
}

/** The number of bytes that each byte of a UTF-8 text takes in JSON. */
const escapedBytes = Uint8Array.from({ length: 256 }, (_none, byte) =>
  byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).length - 2 : 1,
)
