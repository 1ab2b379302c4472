/** An export: its text, a stream of it, the answer that carries it, or its pieces. */
export type ExportSource =
  | string
  | ReadableStream<Uint8Array>
  | Response
  | AsyncIterable<string | Uint8Array>
  | Iterable<string | Uint8Array>

/** UTF-16 units of the longest line: a body of 1 MiB, escaped twice, and room to spare. */
const LINE_CHARS_MAX = 16_777_216

/**
 * The lines of a text that comes in pieces, each without its LF. What follows the last LF is a line unless empty.
 * @throws RangeError when a line is longer than 16 Mi characters
 */
export async function* textLines(source: ExportSource): AsyncGenerator<string, void> {
  let begun = ''
  for await (const piece of textPieces(source)) {
    const text = begun + piece
    let lineStart = 0
    // What had begun holds no LF, so the search starts behind it.
    for (let end = text.indexOf('\n', begun.length); end !== -1; end = text.indexOf('\n', lineStart)) {
      yield text.slice(lineStart, end)
      lineStart = end + 1
    }
    begun = text.slice(lineStart)
    if (begun.length > LINE_CHARS_MAX)
      throw new RangeError(`Expected lines of at most ${LINE_CHARS_MAX} characters`)
  }
  if (begun !== '') yield begun
}

async function* textPieces(source: ExportSource): AsyncGenerator<string, void> {
  if (typeof source === 'string') return yield source
  // A byte order mark is no part of an export: it stays in the text, so that the first line is refused.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  for await (const piece of piecesOf(source)) {
    yield typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true })
  }
  yield decoder.decode()
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
