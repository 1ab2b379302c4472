import { BRACKET_OPEN, COMMA, QUOTE } from '../../src/base/ascii.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { readJson } from '../../src/strand/json.js'
import {
  isBlank,
  isJsonSpace,
  itemEnd,
  memberStart,
  spaceEnd,
  stringEnd,
} from '../../src/strand/json-scanner.js'
import type { Steps, Turn } from '../shard/state.js'

/** A batch whose records are not yet parsed. */
export interface SplitBatch {
  /** The batch with each record replaced by 0. */
  frame: unknown
  items: Uint8Array[]
}

/**
 * Splits a batch `{records, atomic?}` into its records without parsing them, because JSON.parse cannot be
 * interrupted and takes long for a whole batch. Invalid JSON is found when the records are parsed.
 */
export function* splitBatch(bytes: Buffer, turn: Turn): Steps<SplitBatch | Refusal> {
  const list = memberStart(bytes, 'records')
  if (bytes[list] !== BRACKET_OPEN) return framed(bytes, [])
  const items: Uint8Array[] = []
  let end = list
  do {
    const from = end + 1
    end = itemEnd(bytes, from)
    items.push(bytes.subarray(from, end))
    if (items.length > limits.batchRecordsMax) return tooMany
    if (turn.spent()) yield
  } while (bytes[end] === COMMA)
  if (items.length === 1 && isBlank(bytes, list + 1, end)) items.pop()
  const zeros = Buffer.from(items.map(() => '0').join(','))
  return framed(Buffer.concat([bytes.subarray(0, list + 1), zeros, bytes.subarray(end)]), items)
}

const tooMany = refuse('too_large', `Expected at most ${limits.batchRecordsMax} records`)

function framed(around: Buffer, items: Uint8Array[]): SplitBatch | Refusal {
  const frame = around.length > limits.requestBytesMax ? withoutSpace(around) : around
  if (frame.length > limits.requestBytesMax) {
    return refuse('validation_failed', 'Unknown member: expected only records and atomic')
  }
  const parsed = readJson(frame, limits.nestingDepthMax + 3)
  return 'code' in parsed ? parsed : { frame: parsed.value, items }
}

/** JSON without the white space between its tokens; stops once the result is too long. */
function withoutSpace(text: Buffer): Buffer {
  const pieces: Buffer[] = []
  let length = 0
  for (let at = spaceEnd(text, 0); at < text.length && length <= limits.requestBytesMax;) {
    const from = at
    while (at < text.length && !isJsonSpace(text[at])) at = text[at] === QUOTE ? stringEnd(text, at) : at + 1
    pieces.push(text.subarray(from, at))
    length += at - from
    at = spaceEnd(text, at)
  }
  return Buffer.concat(pieces)
}
