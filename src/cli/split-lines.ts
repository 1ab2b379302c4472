import { limits } from '../base/limits/limits.js'
import { LINE_BYTES_MAX } from '../proof/export-lines.js'

const LF = 0x0a

/**
 * Splits UTF-8 bytes into segments of whole lines, each of `limits.verifySegmentBytes` at most, or of one line that is
 * longer. The last one ends where the bytes end. If reading fails, the lines before are returned first.
 * @param spare segments whose memory may be used again; threads share it
 * @throws Error for a line beyond `LINE_BYTES_MAX`
 */
export async function* splitSegments(
  chunks: AsyncIterable<Uint8Array>,
  spare: Uint8Array[],
): AsyncGenerator<Uint8Array> {
  let segment = roomFor(spare, 0)
  let length = 0
  try {
    for await (const chunk of chunks) {
      for (let from = 0; from < chunk.length;) {
        if (length === segment.length) {
          const full = segment
          const end = full.lastIndexOf(LF) + 1
          segment = roomFor(spare, length - end)
          segment.set(full.subarray(end))
          length -= end
          if (end > 0) yield full.subarray(0, end)
        }
        const part = chunk.subarray(from, from + segment.length - length)
        segment.set(part, length)
        length += part.length
        from += part.length
      }
    }
  } catch (error) {
    const end = segment.subarray(0, length).lastIndexOf(LF) + 1
    if (end > 0) yield segment.subarray(0, end)
    throw error
  }
  // A segment has room for a line and its LF; the last line may have none.
  const last = length - (segment.subarray(0, length).lastIndexOf(LF) + 1)
  if (last > LINE_BYTES_MAX) throw tooLong()
  if (length > 0) yield segment.subarray(0, length)
}

function tooLong(): Error {
  return new Error(`a line is longer than ${LINE_BYTES_MAX} bytes`)
}

/** Memory for a segment that begins with this many bytes. */
function roomFor(spare: Uint8Array[], bytes: number): Uint8Array {
  const usual = limits.verifySegmentBytes
  if (bytes < usual) return spare.pop() ?? new Uint8Array(new SharedArrayBuffer(usual))
  if (bytes > LINE_BYTES_MAX) throw tooLong()
  return new Uint8Array(new SharedArrayBuffer(Math.min(2 * bytes, LINE_BYTES_MAX + 1)))
}

/**
 * Splits UTF-8 bytes into lines at LF and nowhere else: a JSON string may hold U+2028, at which the platform's own line
 * reader splits too. Text after the last LF is a line if it is not empty.
 * @throws Error for a line beyond `LINE_BYTES_MAX`, or one that is not UTF-8
 */
export async function* splitLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  for await (const segment of splitSegments(chunks, [])) {
    for (let start = 0; start < segment.length;) {
      const lineFeed = segment.indexOf(LF, start)
      const end = lineFeed === -1 ? segment.length : lineFeed
      yield decoder.decode(segment.subarray(start, end))
      start = end + 1
    }
  }
}
