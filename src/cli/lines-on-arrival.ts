import { limits } from '../base/limits/limits.js'

const LF = 0x0a

/** What editors of Windows begin a file of UTF-8 with. */
const BOM = Buffer.from('\ufeff')

/** A line without its LF, and its place in the input, from 1. */
export interface NumberedLine {
  number: number
  bytes: Buffer
}

/**
 * Splits bytes into lines at LF as they arrive, blank ones and a byte order mark at the beginning left out: what one chunk completes comes together, so that a
 * slow pipe is written at once and a fast one in large batches. Text after the last LF is a line too.
 * @throws Error for a line that is longer than a batch may be
 */
export async function* linesOnArrival(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<NumberedLine[], void> {
  let rest: Buffer = Buffer.alloc(0)
  let number = 0
  const numbered = (line: Buffer) => {
    number += 1
    const isMarked = number === 1 && line.subarray(0, BOM.length).equals(BOM)
    return { number, bytes: isMarked ? line.subarray(BOM.length) : line }
  }
  for await (const chunk of chunks) {
    const all = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    const lines: NumberedLine[] = []
    let from = 0
    for (let end = all.indexOf(LF); end !== -1; end = all.indexOf(LF, from)) {
      lines.push(numbered(all.subarray(from, end)))
      from = end + 1
    }
    rest = all.subarray(from)
    if (rest.length > limits.batchBytesMax)
      throw new Error(`Line ${number + 1} is longer than a record may be`)
    const filled = lines.filter(isFilled)
    if (filled.length > 0) yield filled
  }
  const last = [numbered(rest)].filter(isFilled)
  if (last.length > 0) yield last
}

function isFilled({ bytes }: NumberedLine): boolean {
  return bytes.some((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0d)
}
