import { withoutMark } from '../base/bytes.js'
import { limits } from '../base/limits/limits.js'
import { type LineChunk, lineEnd, LineSplitter } from '../base/line-splitter.js'
import { LINE_BYTES_MAX } from '../proof/export-lines.js'
import { isBlank } from '../strand/json-scanner.js'

/** A line without its LF, and its place in the input, from 1. */
export interface NumberedLine {
  number: number
  bytes: Uint8Array
}

/**
 * Splits bytes into lines at LF as they arrive, blank ones and a byte order mark at the beginning left out: what one chunk
 * completes comes together, so that a slow pipe is written at once and a fast one in large batches.
 * @throws Error for a line that is longer than a batch may be
 */
export async function* linesOnArrival(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<NumberedLine[], void> {
  const splitter = new LineSplitter({ bytes: Infinity, lines: Infinity })
  for await (const chunk of chunks) {
    splitter.push(chunk)
    const lines = filledLines(splitter.flushLines())
    if (splitter.begun > limits.batchBytesMax)
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
    const text = number === 1 ? withoutMark(line) : line
    if (!isBlank(text)) lines.push({ number, bytes: text })
    from = to + 1
  }
  return lines
}

/** Bytes with which a segment is full: with the line that fills it, it fits into its memory, unless that is a long one. */
const SEGMENT_BYTES = limits.verifySegmentBytes - 65_536

const tooLong = new Error(`a line is longer than ${LINE_BYTES_MAX} bytes`)

/** Segments of whole lines. If reading fails, the lines before are returned first. */
async function* wholeLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  const splitter = new LineSplitter({ bytes: SEGMENT_BYTES, lines: Infinity, lineBytesMax: LINE_BYTES_MAX })
  try {
    for await (const chunk of chunks) {
      yield* segmentsOf(splitter.push(chunk))
      if (splitter.begun > LINE_BYTES_MAX) throw tooLong
    }
  } catch (error) {
    if (error !== tooLong) yield* segmentsOf([splitter.flushLines()])
    throw error
  }
  yield* segmentsOf([splitter.end()])
}

function* segmentsOf(chunks: readonly (LineChunk | undefined)[]): Generator<Buffer> {
  for (const chunk of chunks) {
    if (chunk?.isLong === true) throw tooLong
    if (chunk !== undefined) yield chunk.bytes
  }
}

/**
 * Splits UTF-8 bytes into segments of whole lines, in memory that threads share. The last one ends where the bytes end.
 * If reading fails, the lines before are returned first.
 * @param spare memory of earlier segments, which may be used again
 * @throws Error for a line beyond `LINE_BYTES_MAX`
 */
export async function* splitSegments(
  chunks: AsyncIterable<Uint8Array>,
  spare: Uint8Array[],
): AsyncGenerator<Uint8Array> {
  for await (const lines of wholeLines(chunks)) {
    const isUsual = lines.length <= limits.verifySegmentBytes
    const bytes = isUsual ? limits.verifySegmentBytes : lines.length
    const memory = (isUsual ? spare.pop() : undefined) ?? new Uint8Array(new SharedArrayBuffer(bytes))
    memory.set(lines)
    yield memory.subarray(0, lines.length)
  }
}

/**
 * Splits UTF-8 bytes into lines at LF and nowhere else: a JSON string may hold U+2028, at which the platform's own line
 * reader splits too. Text after the last LF is a line if it is not empty.
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
