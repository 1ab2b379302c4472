/** Bytes of one line of an export: the largest body, each byte escaped, and room for the rest. */
const LINE_BYTES_MAX = 8 * 1_048_576

/**
 * Splits UTF-8 bytes into lines at LF and nowhere else: a JSON string may hold U+2028, at which the platform's own
 * line reader splits too. What follows the last LF is a line if it is not empty.
 * @throws Error for a line beyond `LINE_BYTES_MAX`, or one that is not UTF-8
 */
export async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let waiting: Buffer[] = []
  let waitingBytes = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      const part = chunk.subarray(start, end)
      yield decoder.decode(waiting.length === 0 ? part : Buffer.concat([...waiting, part]))
      waiting = []
      waitingBytes = 0
      start = end + 1
    }
    waiting.push(chunk.subarray(start))
    waitingBytes += chunk.length - start
    if (waitingBytes > LINE_BYTES_MAX) throw new Error(`a line is longer than ${LINE_BYTES_MAX} bytes`)
  }
  if (waitingBytes > 0) yield decoder.decode(Buffer.concat(waiting))
}
