import { withoutByteOrderMark } from '../base/bytes.js'
import { limits } from '../base/limits/limits.js'
import { type LineChunk, lineEnd, LineSplitter } from '../base/line-splitter.js'
import { LINE_BYTES_MAX } from '../proof/export-lines.js'
import { isBlank } from '../strand/json-scanner.js'

/** A line without its LF, and its number in the input, from 1. */
export interface NumberedLine {
  number: number
  bytes: Uint8Array
}

/**
 * Splits bytes into lines at LF, without blank lines and a leading byte order mark. Yields together all lines
 * that a chunk completes, so that lines of a slow pipe are written immediately and lines of a fast one in
 * large batches.
 * @throws Error for a line that is longer than a batch may be
 */
export async function* streamLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<NumberedLine[], void> {
  const splitter = new LineSplitter({ bytes: Infinity, lines: Infinity })
  for await (const chunk of chunks) {
    splitter.push(chunk)
    const lines = filledLines(splitter.flushLines())
    if (splitter.unfinishedBytes > limits.batchBytesMax)
      throw new Error(`Line ${splitter.nextLine} is longer than a record may be`)
    if (lines.length > 0) yield lines
  }
  const last = filledLines(splitter.end())
  if (last.length > 0) yield last
}

function filledLines(chunk: LineChunk | undefined): NumberedLine[] {
  const lines: NumberedLine[] = []
  if (chunk === undefined) return lines
  const { bytes } = chunk
  let number = chunk.firstLine
  for (let from = 0; from < bytes.length; number += 1) {
    const to = lineEnd(bytes, from)
    const line = bytes.subarray(from, to)
    const text = number === 1 ? withoutByteOrderMark(line) : line
    if (!isBlank(text)) lines.push({ number, bytes: text })
    from = to + 1
  }
  return lines
}

/**
 * A segment is full at this size. The line that fills it still fits into its memory, unless that line is very
 * long.
 */
const SEGMENT_BYTES = limits.verifySegmentBytes - 65_536

const lineTooLong = new Error(`a line is longer than ${LINE_BYTES_MAX} bytes`)

/** Yields segments of whole lines. If reading fails, yields the lines before the failure first. */
async function* wholeLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const splitter = new LineSplitter({ bytes: SEGMENT_BYTES, lines: Infinity, lineBytesMax: LINE_BYTES_MAX })
  try {
    for await (const chunk of chunks) {
      yield* segmentsOf(splitter.push(chunk))
      if (splitter.unfinishedBytes > LINE_BYTES_MAX) throw lineTooLong
    }
  } catch (error) {
    if (error !== lineTooLong) yield* segmentsOf([splitter.flushLines()])
    throw error
  }
  yield* segmentsOf([splitter.end()])
}

function* segmentsOf(chunks: readonly (LineChunk | undefined)[]): Generator<Buffer> {
  for (const chunk of chunks) {
    if (chunk?.isLong === true) throw lineTooLong
    if (chunk !== undefined) yield chunk.bytes
  }
}

/**
 * Splits UTF-8 bytes into segments of whole lines in shared memory. The last segment ends with the input. If
 * reading fails, yields the lines before the failure first.
 * @param spare memory of earlier segments, which is reused
 * @throws Error for a line beyond `LINE_BYTES_MAX`
 */
export async function* splitSegments(
  chunks: AsyncIterable<Uint8Array>,
  spare: Uint8Array[],
): AsyncGenerator<Uint8Array> {
  for await (const lines of wholeLines(chunks)) {
    const isStandardSize = lines.length <= limits.verifySegmentBytes
    const bytes = isStandardSize ? limits.verifySegmentBytes : lines.length
    const memory = (isStandardSize ? spare.pop() : undefined) ?? new Uint8Array(new SharedArrayBuffer(bytes))
    memory.set(lines)
    yield memory.subarray(0, lines.length)
  }
}

/**
 * Splits UTF-8 bytes into lines at LF only. Node's line reader also splits at U+2028, which a JSON string may
 * contain. Text after the last LF is a line if it is not empty.
 * @throws Error for a line beyond `LINE_BYTES_MAX`, or one that is not UTF-8
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  for await (const lines of wholeLines(chunks)) {
    for (let from = 0; from < lines.length;) {
      const to = lineEnd(lines, from)
      yield decoder.decode(lines.subarray(from, to))
      from = to + 1
    }
  }
}
