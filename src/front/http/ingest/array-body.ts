import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { BodyPart, BodyQueue } from '../body-queue.js'
import { tooLarge } from '../body.js'
import type { FrontSlices } from '../front-turn.js'
import type { Transfer } from '../../limits/transfers.js'
import { type BodyMemory, GatheredBytes } from '../../../base/gathered-bytes.js'
import type { LineChunk } from '../../../base/line-splitter.js'
import { ArrayLines } from './array-lines.js'

/** A refused line; without bytes if it is not to be stored. `agent` is empty if only the line names it. */
export interface RefusedLine extends LineChunk {
  agent: string
  refusal: Refusal
}

/** A part of a body; or whole lines, with blank ones instead of those that are refused already. */
export type SourcePart = BodyPart | { bytes: Buffer; refused: readonly RefusedLine[] }

/** A body whose parts are read one by one. */
export interface BodySource extends Pick<BodyQueue, 'interruption'> {
  next(): Promise<SourcePart>
}

/** A body that could not be read, or whose client has disconnected. */
export type BrokenBody = NonNullable<BodySource['interruption']>

/**
 * Reserves memory for a body, and waits for it in the meantime.
 * @returns why the body is not read
 */
export async function reserveFor(
  body: BodySource,
  { memory, bytes }: { memory: Transfer; bytes: number },
): Promise<BrokenBody | undefined> {
  const refusal = await memory.reserveWhenFree(bytes, () => body.interruption !== undefined)
  return body.interruption ?? (refusal === undefined ? undefined : { refusal })
}

/**
 * A body that is read as a whole. Unless it is small, memory for all of it is reserved before the rest of it
 * arrives: several that fill the memory in parts could all not end.
 * @param need `bytes`: what all of it, and what is made of it, can take
 */
export function reservedBody(body: BodySource, need: { memory: Transfer; bytes: number }): BodySource {
  async function* parts(): AsyncGenerator<SourcePart, undefined> {
    for (let length = 0; ;) {
      const part = await body.next()
      const wasSmall = length <= limits.smallBodyBytesMax
      if ('bytes' in part) length += part.bytes.length
      const isLarge = wasSmall && length > limits.smallBodyBytesMax
      yield (isLarge ? await reserveFor(body, need) : undefined) ?? part
    }
  }
  return bodyOf(parts(), body)
}

/** How a body is read as a whole. */
interface BodyReading {
  memory: BodyMemory
  /** The most bytes of the body, by its head. */
  bodyBytesMax: number
  /** Beyond this, it is refused with 413. */
  bytesMax: number
}

/** Takes no more memory than was reserved for the body. */
function gatheredBytes({ memory, bodyBytesMax, bytesMax }: BodyReading): GatheredBytes {
  return new GatheredBytes({ memory, bytesMax: Math.min(bodyBytesMax, bytesMax) })
}

/** Bytes of an array that are converted to lines in one slice of the front thread. */
const SLICE_BYTES = 65_536

/**
 * Reads a whole array, because nothing may be written before it is known to be one.
 * @param how `isOne`: the body is one value, treated as an array of one
 * @returns its elements as lines; or why it is malformed, in which case the rest of the body may be unread
 */
export async function readArray(
  body: BodySource,
  how: BodyReading & { slices: FrontSlices; isOne: boolean },
): Promise<{ lines: Buffer } | { malformed: Refusal } | BrokenBody> {
  const { slices, isOne, bytesMax } = how
  const lines = gatheredBytes(how)
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
  reading: BodyReading,
): Promise<{ bytes: Buffer } | BrokenBody> {
  const { bytesMax } = reading
  const gathered = gatheredBytes(reading)
  for (;;) {
    const part = await body.next()
    if ('ended' in part) return { bytes: gathered.bytes }
    if (!('bytes' in part)) return part
    if (gathered.length + part.bytes.length > bytesMax) return { refusal: tooLarge(bytesMax) }
    gathered.add(part.bytes)
  }
}

type Parts<Part> = Iterator<Part, undefined> | AsyncIterator<Part, undefined>

/** A body of parts that were made of another one, whose interruption ends it. */
export function bodyOf(parts: Parts<SourcePart>, source: BodySource): BodySource {
  return {
    get interruption() {
      return source.interruption
    },
    async next() {
      const part = source.interruption ?? (await parts.next()).value
      return source.interruption ?? part ?? { ended: true }
    },
  }
}

/** A body with a copy in memory, so that it can be stored if it is refused. */
export class RecordedBody implements BodySource {
  readonly #body: BodySource
  readonly #copy: GatheredBytes
  /** The body is too long to be stored. */
  #isOver = false

  constructor(body: BodySource, reading: Omit<BodyReading, 'bytesMax'>) {
    this.#body = body
    this.#copy = gatheredBytes({ ...reading, bytesMax: limits.ingestAtomicBytesMax })
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
