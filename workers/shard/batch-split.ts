import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  QUOTE,
} from '../../src/base/ascii.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { readJson } from '../../src/strand/json.js'
import type { Steps, Turn } from './turn.js'

/** A batch whose records are not parsed yet. */
export interface SplitBatch {
  /** The batch with each record replaced by 0. */
  frame: unknown
  items: Uint8Array[]
}

/** Bytes between two checks of how long the turn has lasted. */
const LOOK_BYTES = 65_536

/**
 * Splits a batch `{records, atomic?}` into its records without parsing them: JSON.parse takes a text in one go, which
 * takes long for a whole batch. Invalid JSON is found when the pieces are parsed.
 */
export function* splitBatch(bytes: Buffer, turn: Turn): Steps<SplitBatch | Refusal> {
  const items: Uint8Array[] = []
  const around: Buffer[] = []
  let aroundFrom = 0
  let itemFrom = -1
  let depth = 0
  let atKey = false
  let isRecords = false
  let look = LOOK_BYTES
  for (let at = 0; at < bytes.length;) {
    if (at > look) {
      look = at + LOOK_BYTES
      if (turn.spent()) yield
    }
    const byte = bytes[at]
    if (byte === QUOTE) {
      const end = stringEnd(bytes, at)
      if (depth === 1 && atKey) isRecords = textOf(bytes.subarray(at, end)) === 'records'
      at = end
      continue
    }
    if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
      depth++
      if (depth === 1) atKey = true
      else if (depth === 2 && byte === BRACKET_OPEN && isRecords && !atKey) {
        itemFrom = at + 1
        around.push(bytes.subarray(aroundFrom, itemFrom))
      }
    } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
      if (depth === 2 && itemFrom >= 0) {
        const last = bytes.subarray(itemFrom, at)
        if (items.length > 0 || !isSpace(last)) items.push(last)
        around.push(zeros(items.length))
        aroundFrom = at
        itemFrom = -1
      }
      depth--
    } else if (byte === COMMA && depth === 2 && itemFrom >= 0) {
      items.push(bytes.subarray(itemFrom, at))
      itemFrom = at + 1
    } else if (depth === 1 && (byte === COMMA || byte === COLON)) atKey = byte === COMMA
    if (items.length > limits.batchRecordsMax) return tooMany
    at++
  }
  if (itemFrom < 0) around.push(bytes.subarray(aroundFrom))
  return framed(Buffer.concat(around), items)
}

const tooMany = refuse('too_large', `Expected at most ${limits.batchRecordsMax} records`)

function framed(around: Buffer, items: Uint8Array[]): SplitBatch | Refusal {
  const frame = around.length > limits.requestBytesMax ? withoutSpace(around) : around
  if (frame.length > limits.requestBytesMax) {
    return refuse('validation_failed', 'Expected only records and atomic')
  }
  const parsed = readJson(frame, limits.nestingDepthMax + 3)
  return 'code' in parsed ? parsed : { frame: parsed.value, items }
}

function zeros(count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, () => '0').join(','))
}

/** Where the string that begins at `start` has ended. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** The most bytes of a name with escapes that can still be `records`. */
const NAME_BYTES_MAX = 64

function textOf(token: Buffer): string | undefined {
  if (token.length > NAME_BYTES_MAX) return undefined
  const read = readJson(token, 0)
  return 'code' in read || typeof read.value !== 'string' ? undefined : read.value
}

function isSpace(bytes: Uint8Array): boolean {
  return bytes.every(isSpaceByte)
}

function isSpaceByte(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d
}

/** JSON without the white space between its tokens. */
function withoutSpace(text: Buffer): Buffer {
  const kept = Buffer.allocUnsafe(text.length)
  let length = 0
  for (let at = 0; at < text.length;) {
    const end = text[at] === QUOTE ? Math.min(stringEnd(text, at), text.length) : at + 1
    if (!isSpaceByte(text[at])) length += text.copy(kept, length, at, end)
    at = end
  }
  return kept.subarray(0, length)
}
