import { LINE_BYTES_MAX } from '../proof/export-lines.js'
import { utf8 } from '../proof/hex.js'

/** An export: its text, a stream of it, the answer that contains it, or its pieces. */
export type ExportSource =
  | string
  | ReadableStream<Uint8Array>
  | Response
  | AsyncIterable<string | Uint8Array>
  | Iterable<string | Uint8Array>

/** A line that cannot be read; nothing after it is read. */
export interface UnreadableLine {
  reason: string
}

/** Each UTF-16 code unit takes at most three bytes of UTF-8. */
const UNIT_BYTES_MAX = 3

/**
 * The lines of a text that comes in pieces, each without its LF. Text after the last LF is a line unless empty. A line
 * that is too long or not UTF-8 is the last one.
 */
export async function* textLines(source: ExportSource): AsyncGenerator<string | UnreadableLine, void> {
  let begun = ''
  for await (const piece of textPieces(source)) {
    if (typeof piece !== 'string') return yield piece
    const text = begun + piece
    let lineStart = 0
    // The begun line has no LF, so the search starts after it.
    for (let end = text.indexOf('\n', begun.length); end !== -1; end = text.indexOf('\n', lineStart)) {
      const line = text.slice(lineStart, end)
      if (isTooLong(line)) return yield tooLong
      yield line
      lineStart = end + 1
    }
    begun = text.slice(lineStart)
    if (begun.length > LINE_BYTES_MAX) return yield tooLong
  }
  if (begun !== '') yield isTooLong(begun) ? tooLong : begun
}

const tooLong: UnreadableLine = { reason: `The line is longer than ${LINE_BYTES_MAX} bytes` }

function isTooLong(line: string): boolean {
  return line.length * UNIT_BYTES_MAX > LINE_BYTES_MAX && utf8(line).length > LINE_BYTES_MAX
}

async function* textPieces(source: ExportSource): AsyncGenerator<string | UnreadableLine, void> {
  if (typeof source === 'string') return yield source
  // A byte order mark is not allowed in an export: it stays in the text, so that the first line is refused.
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

/** Not the stream's own iterator, which several browsers lack. */
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
