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
import type { TaskAnswers } from './pool-tasks.js'

/** What an OTLP request carries. */
export type OtlpSignal = 'logs' | 'traces'

/** The body of an OTLP request, to be converted to lines `{agent, data, type}`. */
export interface OtlpTask {
  body: Uint8Array
  signal: OtlpSignal
  encoding: 'json' | 'protobuf'
  /** The agent of all records; otherwise the resource of each names it. */
  agent?: string
  /** A record of more bytes is refused without being decoded. */
  recordBytesMax: number
  /** Whether refused records are returned with their bytes. */
  keeps: boolean
}

const isCode: Check<ErrorCode> = (value): value is ErrorCode => isText(value) && isErrorCode(value)

/** A record that is not a line: its number, from 1, and why. `bytes` are those received, if they are stored. */
const isRefused = fields({ line: isNumber, agent: isText, code: isCode, detail: isText, bytes: isBytes })
export type RefusedRecord = Checked<typeof isRefused>

/**
 * One line for each record, in the order of the request; blank for a refused one. `agent` is that of all
 * lines, if they have the same.
 */
const isLines = fields({ lines: isBytes, refused: listOf(isRefused), agent: optional(isText) })
export type OtlpLines = Checked<typeof isLines>

/** Why a body as a whole is not an OTLP request. */
const isFault = fields({ code: isCode, detail: isText })
export type OtlpFault = Checked<typeof isFault>

export interface OtlpTasks {
  otlpLines: { task: OtlpTask; found: OtlpLines | OtlpFault }
}

export const otlpAnswers: TaskAnswers<OtlpTasks> = {
  otlpLines: (value): value is OtlpLines | OtlpFault => isLines(value) || isFault(value),
}

/** Converts bodies of OTLP requests. Throws RefusedError if no thread can. */
export interface OtlpDecoder {
  decode(task: OtlpTask): Promise<OtlpLines | OtlpFault>
}
