import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { BodyPart, BodyQueue } from '../body-queue.js'
import { tooLarge } from '../body.js'
import type { FrontSlices } from '../front-turn.js'
import { type BodyMemory, GatheredBytes } from '../../../base/gathered-bytes.js'
import type { LineChunk } from '../../../base/line-splitter.js'
import { ArrayLines } from './array-lines.js'

/** A refused line; without bytes if it is not to be stored. `agent` is empty if only the line names it. */
export interface RefusedLine extends LineChunk {
  agent: string
  refusal: Refusal
}

/** A body whose parts are read one by one. A part has blank lines instead of those that are refused already. */
export interface BodySource extends Pick<BodyQueue, 'interruption'> {
  next(): Promise<BodyPart | { bytes: Buffer; refused: readonly RefusedLine[] }>
}

/** A body that could not be read, or whose client has disconnected. */
export type BrokenBody = NonNullable<BodySource['interruption']>

/** Bytes of an array that are converted to lines in one slice of the front thread. */
const SLICE_BYTES = 65_536

/**
 * Reads a whole array, because nothing may be written before it is known to be one.
 * @param how `isOne`: the body is one value, treated as an array of one; `bytesMax`: of the array
 * @returns its elements as lines; or why it is malformed, in which case the rest of the body may be unread
 */
export async function readArray(
  body: BodySource,
  how: { slices: FrontSlices; memory: BodyMemory; isOne: boolean; bytesMax: number },
): Promise<{ lines: Buffer } | { malformed: Refusal } | BrokenBody> {
  const { slices, memory, isOne, bytesMax } = how
  const lines = new GatheredBytes({ memory, bytesMax })
  const array = new ArrayLines(isOne ? 1 : Infinity)
  if (isOne) array.push(bracketOpen)
  for (;;) {
    const part = await body.next()
    if ('gone' in part || 'refusal' in part) return part
    if ('ended' in part) {
      if (isOne) lines.add(array.push(bracketClose))
      const { bytes } = lines
      // White space after the array is not a line.
      if (array.isWhole) return { lines: bytes.subarray(0, bytes.lastIndexOf(LINE_FEED) + 1) }
      break
    }
    const { bytes } = part
    if (lines.length + bytes.length > bytesMax) return { refusal: tooLongArray(bytesMax) }
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      lines.add(await slices.run(() => array.push(bytes.subarray(at, at + SLICE_BYTES))))
    }
    if (array.isBroken) break
  }
  const detail = `Expected one complete JSON ${isOne ? 'value' : 'array'}`
  return { malformed: refuse('validation_failed', detail) }
}

const bracketOpen = Buffer.from('[')
const bracketClose = Buffer.from(']')

/** 413 for an array that is too large to be buffered. */
function tooLongArray(bytesMax: number): Refusal {
  return refuse(
    'too_large',
    `Expected an array of at most ${bytesMax} bytes; send more as lines (application/x-ndjson)`,
  )
}

/**
 * Reads a whole body.
 * @returns its bytes, counted until the upload is answered; 413 for more than `bytesMax`
 */
export async function readWhole(
  body: BodySource,
  { memory, bytesMax }: { memory: BodyMemory; bytesMax: number },
): Promise<{ bytes: Buffer } | BrokenBody> {
  const gathered = new GatheredBytes({ memory, bytesMax })
  for (;;) {
    const part = await body.next()
    if ('ended' in part) return { bytes: gathered.bytes }
    if (!('bytes' in part)) return part
    if (gathered.length + part.bytes.length > bytesMax) return { refusal: tooLarge(bytesMax) }
    gathered.add(part.bytes)
  }
}

/** A body source that returns bytes which were already read from another one. */
export function bodyOf(bytes: Buffer, source: BodySource): BodySource {
  const parts: BodyPart[] = [{ bytes }]
  return {
    get interruption() {
      return source.interruption
    },
    async next() {
      return source.interruption ?? parts.shift() ?? { ended: true }
    },
  }
}

/** A body with a copy in memory, so that it can be stored if it is refused. */
export class RecordedBody implements BodySource {
  readonly #body: BodySource
  readonly #copy: GatheredBytes
  /** The body is too long to be stored. */
  #isOver = false

  constructor(body: BodySource, memory: BodyMemory) {
    this.#body = body
    this.#copy = new GatheredBytes({ memory, bytesMax: limits.ingestAtomicBytesMax })
  }

  get interruption(): BodySource['interruption'] {
    return this.#body.interruption
  }

  async next(): Promise<BodyPart> {
    const part = await this.#body.next()
    if (!('bytes' in part) || this.#isOver) return part
    this.#isOver = this.#copy.length + part.bytes.length > limits.ingestAtomicBytesMax
    if (this.#isOver) this.drop()
    else this.#copy.add(part.bytes)
    return part
  }

  /** Reads the rest. @returns the whole body, or 413 */
  async whole(): Promise<{ bytes: Buffer } | BrokenBody> {
    while (!this.#isOver) {
      const part = await this.next()
      if ('gone' in part || 'refusal' in part) return part
      if ('ended' in part) return { bytes: this.#copy.bytes }
    }
    return { refusal: tooLarge(limits.ingestAtomicBytesMax) }
  }

  /** Frees the copy. */
  drop(): void {
    this.#copy.take()
  }
}
