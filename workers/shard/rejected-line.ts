import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { asBuffer } from '../../src/base/bytes.js'
import type { Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { canonicalJson } from '../../src/strand/json.js'
import { rejectedType } from '../../src/strand/record-type.js'
import type { DraftRules } from '../commands/drafts.js'
import type { Draft } from './commit-group.js'

/** What is kept of a refused line. */
interface RefusedLine {
  line: number
  bytes: Uint8Array
  /** The attributes of the CloudEvent of binary mode whose data it is. */
  event?: Readonly<Record<string, string>> | undefined
}

/** The fewest bytes of a line that one part holds: a line that needs smaller parts is not kept. */
const PART_BYTES_MIN = 256

/** As many times the records that base64 takes are too many for a text, of which every character is escaped. */
const TEXT_FACTOR = 2

/**
 * The records that a refused line is kept as (docs/PIPELINES.md): one `{line, code, detail, text}`, with `base64` in place
 * of `text` where the line is not UTF-8. A line that does not fit into one is cut into parts, each with `part`, `parts`, and
 * the `bytes` and `sha256` of the whole line.
 * @returns none where records are too small, or the line takes more than `limits.ingestRejectedPartsMax`
 */
export function rejectedDrafts(
  { line, bytes, event }: RefusedLine,
  { code, detail }: Refusal,
  rules: DraftRules,
): Draft[] {
  const raw = asBuffer(bytes)
  const told = { line, code, detail, ...(event !== undefined && { event }) }
  const { recordBytesMax, ingested = false } = rules
  const whole = raw.length > recordBytesMax ? undefined : bodyOf({ ...told, ...wholeOf(raw) })
  if (whole !== undefined && whole.length <= recordBytesMax) {
    return [{ type: rejectedType, body: whole, signing: rules.signing, ingested }]
  }
  const sha256 = createHash('sha256').update(raw).digest('hex')
  const common = { ...told, bytes: raw.length, sha256 }
  const most = limits.ingestRejectedPartsMax
  const room = recordBytesMax - bodyOf({ ...common, part: most, parts: most, base64: '' }).length
  const pieces = room < PART_BYTES_MIN ? [] : piecesOf(raw, { room, most })
  if (pieces.length > most) return []
  return pieces.map((piece, index) => ({
    type: rejectedType,
    body: bodyOf({ ...common, part: index + 1, parts: pieces.length, ...piece }),
    // Each is signed: together they are more than one signature may cover in an export.
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

/** Cuts a line into pieces whose JSON text has at most `room` bytes each: texts if they are not more than `most`. */
function piecesOf(raw: Buffer, { room, most }: { room: number; most: number }): KeptText[] {
  const size = Math.floor(room / 4) * 3
  const count = Math.ceil(raw.length / size)
  const textsMax = Math.min(most, TEXT_FACTOR * count)
  const texts = isUtf8(raw) ? textsOf(raw, { room, most: textsMax }) : undefined
  if (texts !== undefined) return texts
  return Array.from({ length: count }, (_none, index) => ({
    base64: raw.toString('base64', index * size, (index + 1) * size),
  }))
}

/** The same as texts; undefined if they are more than `most`. */
function textsOf(raw: Buffer, { room, most }: { room: number; most: number }): KeptText[] | undefined {
  const texts: KeptText[] = []
  let from = 0
  let bytes = 0
  /** Where the character begins. */
  let start = 0
  for (let at = 0; at < raw.length; at++) {
    const byte = raw[at] ?? 0
    if ((byte & 0xc0) !== 0x80) start = at
    bytes += escapedBytes[byte] ?? 0
    if (bytes <= room) continue
    texts.push({ text: raw.toString('utf8', from, start) })
    // The rest is one more.
    if (texts.length === most) return undefined
    from = start
    at = start - 1
    bytes = 0
  }
  texts.push({ text: raw.toString('utf8', from) })
  return texts
}

/** The bytes that each byte of a UTF-8 text takes in JSON. */
const escapedBytes = Uint8Array.from({ length: 256 }, (_none, byte) =>
  byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).length - 2 : 1,
)
