import { isErrorCode, type ErrorCode } from '../base/errors.js'
import {
  type Check,
  type Checked,
  fields,
  isBytes,
  isNumber,
  isText,
  listOf,
  optional,
} from '../base/shape.js'
import type { OtlpFormat } from '../wire/otlp.js'

const isNumbers: Check<Map<number, number>> = (value): value is Map<number, number> =>
  value instanceof Map && [...value].flat().every(isNumber)

/**
 * A position in the body of a request: how many records are before it; the offsets of the next record, of its
 * scope and of its resource, outermost first; and the ends of large values of JSON by their offsets.
 */
const isPosition = fields({ done: isNumber, offsets: listOf(isNumber), ends: isNumbers })
export type OtlpPosition = Checked<typeof isPosition>

/** The body of an OTLP request, of which a part is to be converted to lines `{agent, data, type}`. */
export interface OtlpTask extends OtlpFormat {
  /** Its memory moves to the thread: nothing else may be in it. */
  body: Uint8Array
  /** The agent of all records; otherwise the resource of each names it. */
  agent?: string
  /** Where the part begins, unless it is the first one, with which the whole request is checked. */
  from?: OtlpPosition
  /** The most bytes of the lines of the part; at least `recordBytesMax`. */
  linesBytesMax: number
  /** A record of more bytes is refused without being decoded, and so is one whose line has more. */
  recordBytesMax: number
  /** Whether refused records are returned with their bytes. */
  keeps: boolean
}

const isCode: Check<ErrorCode> = (value): value is ErrorCode => isText(value) && isErrorCode(value)

/**
 * A record that is not a line: its number in the request, from 1, and why. `bytes` are those received, if
 * they are stored.
 */
const isRefused = fields({ line: isNumber, agent: isText, code: isCode, detail: isText, bytes: isBytes })
export type RefusedRecord = Checked<typeof isRefused>

/**
 * One line for each record, in the order of the request; blank for a refused one. `agent` is that of all
 * lines of the request, if they have the same; only the first part has it. If more parts follow, `next` is
 * where the next one begins, and `body` the body.
 */
const isPart = fields({
  lines: isBytes,
  refused: listOf(isRefused),
  agent: optional(isText),
  next: optional(isPosition),
  body: optional(isBytes),
})
export type OtlpPart = Checked<typeof isPart>

/** Why a body as a whole is not an OTLP request. */
const isFault = fields({ code: isCode, detail: isText, body: isBytes })
export type OtlpFault = Checked<typeof isFault>

export const isOtlpAnswer: Check<OtlpPart | OtlpFault> = (value): value is OtlpPart | OtlpFault =>
  isPart(value) || isFault(value)

export interface OtlpCall {
  task: OtlpTask
  /** Whose turn it is: the holder of its memory. */
  holder: string
  /** One word in memory that threads share: 1 when the request needs no answer any more. */
  gone: Int32Array
}

/** Converts bodies of OTLP requests. Throws RefusedError if no thread can. */
export interface OtlpDecoder {
  decode(call: OtlpCall): Promise<OtlpPart | OtlpFault>
}

/** The memory of a task or its answer, which moves to the other thread. */
export function memoryOf(message: OtlpTask | OtlpPart | OtlpFault): ArrayBuffer[] {
  const parts = 'lines' in message ? [message.lines, ...message.refused.map(({ bytes }) => bytes)] : []
  const all = [message.body, ...parts].map((bytes) => bytes?.buffer)
  return [...new Set(all)].filter((buffer) => buffer instanceof ArrayBuffer)
}
