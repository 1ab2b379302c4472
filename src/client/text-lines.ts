import { LINE_BYTES_MAX } from '../proof/export-lines.js'
import { utf8 } from '../proof/hex.js'

/** An export: as a text, a stream, a response, or pieces. */
export type ExportSource =
  | string
  | ReadableStream<Uint8Array>
  | Response
  | AsyncIterable<string | Uint8Array>
  | Iterable<string | Uint8Array>

/** A line that cannot be read; lines after it are not read. */
export interface UnreadableLine {
  reason: string
}

/** Maximum UTF-8 length of one UTF-16 code unit. */
const UNIT_BYTES_MAX = 3

/**
 * Splits a text that arrives in pieces into lines, without their LF. Text after the last LF is a line unless
 * empty. Stops after a line that is too long or not UTF-8.
 */
export async function* textLines(source: ExportSource): AsyncGenerator<string | UnreadableLine, void> {
  let incomplete = ''
  for await (const piece of textPieces(source)) {
    if (typeof piece !== 'string') return yield piece
    const text = incomplete + piece
    let lineStart = 0
    // The incomplete line has no LF, so the search starts after it.
    for (let end = text.indexOf('\n', incomplete.length); end !== -1; end = text.indexOf('\n', lineStart)) {
      const line = text.slice(lineStart, end)
      if (isTooLong(line)) return yield tooLong
      yield line
      lineStart = end + 1
    }
    incomplete = text.slice(lineStart)
    if (incomplete.length > LINE_BYTES_MAX) return yield tooLong
  }
  if (incomplete !== '') yield isTooLong(incomplete) ? tooLong : incomplete
}

const tooLong: UnreadableLine = { reason: `The line is longer than ${LINE_BYTES_MAX} bytes` }

function isTooLong(line: string): boolean {
  return line.length * UNIT_BYTES_MAX > LINE_BYTES_MAX && utf8(line).length > LINE_BYTES_MAX
}

async function* textPieces(source: ExportSource): AsyncGenerator<string | UnreadableLine, void> {
  if (typeof source === 'string') return yield source
  // The byte order mark is kept: it is not allowed in an export, so the first line is refused.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true })
  for await (const piece of piecesOf(source)) {
    const text = typeof piece === 'string' ? piece : decoded(() => decoder.decode(piece, { stream: true }))
    yield text
    if (typeof text !== 'string') return
  }
  yield decoded(() => decoder.decode())
}

function decoded(decode: () => string): string | UnreadableLine {
  try {
    return decode()
  } catch {
    return { reason: 'The line is not UTF-8' }
  }
}

function piecesOf(
  source: Exclude<ExportSource, string>,
): AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array> {
  if (source instanceof Response) return source.body === null ? [] : streamPieces(source.body)
  return source instanceof ReadableStream ? streamPieces(source) : source
}

/** Several browsers lack the async iterator of streams. */
async function* streamPieces(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader()
  let ended = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      ended = done
      if (done) return
      yield value
    }
  } finally {
    if (!ended) await reader.cancel()
  }
}
