import { BRACKET_OPEN } from '../../base/ascii.js'
import { refuse } from '../../base/errors.js'
import { ArrayLines } from './array-lines.js'
import type { BodyPart, BodyQueue } from '../body-queue.js'
import type { FrontSlices } from '../front-slices.js'
import { GatheredBytes } from '../gathered-bytes.js'
import type { BodyMemory } from '../uploads.js'

/** A body whose parts are read one by one. */
export type BodySource = Pick<BodyQueue, 'next' | 'broken'>

/** Bytes of an array that are made into lines in one slice of the front thread. */
const SLICE_BYTES = 65_536

/** A JSON body whose first byte that is no white space is looked at before it is read. */
export class JsonBody implements BodySource {
  readonly #body: BodySource
  readonly #seen: BodyPart[] = []

  readonly #memory: BodyMemory

  constructor(body: BodySource, memory: BodyMemory) {
    this.#body = body
    this.#memory = memory
  }

  get broken(): BodySource['broken'] {
    return this.#body.broken
  }

  async next(): Promise<BodyPart> {
    return this.#seen.shift() ?? this.#body.next()
  }

  /** Whether it begins like an array, after at most `spacesMax` bytes of white space. */
  async isArray(spacesMax: number): Promise<boolean> {
    const spaces = new GatheredBytes({ memory: this.#memory })
    for (;;) {
      const part = await this.#body.next()
      const bytes = 'bytes' in part ? part.bytes : undefined
      const at = bytes?.findIndex((byte) => !isSpace(byte)) ?? -1
      if (bytes !== undefined && at === -1) {
        spaces.add(bytes)
        if (spaces.length <= spacesMax) continue
      }
      if (spaces.length > 0) this.#seen.push({ bytes: spaces.take() })
      if (bytes === undefined || at >= 0) this.#seen.push(part)
      return bytes?.[at] === BRACKET_OPEN
    }
  }
}

/** The elements of an array as lines. A malformed array is refused where that becomes clear. */
export class ArrayBody implements BodySource {
  readonly #body: BodySource
  readonly #slices: FrontSlices
  readonly #lines: ArrayLines
  #bytes: Buffer = Buffer.alloc(0)

  constructor(body: BodySource, { slices, elementsMax }: { slices: FrontSlices; elementsMax: number }) {
    this.#lines = new ArrayLines(elementsMax)
    this.#body = body
    this.#slices = slices
  }

  get broken(): BodySource['broken'] {
    return this.#body.broken
  }

  async next(): Promise<BodyPart> {
    if (this.broken !== undefined) return this.broken
    if (this.#lines.isBroken) return noArray
    if (this.#bytes.length === 0) {
      const part = await this.#body.next()
      if ('ended' in part) return this.#lines.isWhole ? part : noArray
      if (!('bytes' in part)) return part
      this.#bytes = part.bytes
    }
    const some = this.#bytes.subarray(0, SLICE_BYTES)
    this.#bytes = this.#bytes.subarray(SLICE_BYTES)
    return { bytes: await this.#slices.run(() => this.#lines.push(some)) }
  }
}

/** A JSON value as an array of itself. */
export class OneElement implements BodySource {
  readonly #body: BodySource
  #place: 'before' | 'within' | 'behind' = 'before'

  constructor(body: BodySource) {
    this.#body = body
  }

  get broken(): BodySource['broken'] {
    return this.#body.broken
  }

  async next(): Promise<BodyPart> {
    if (this.#place === 'before') {
      this.#place = 'within'
      return { bytes: Buffer.from('[') }
    }
    if (this.#place === 'behind') return { ended: true }
    const part = await this.#body.next()
    if (!('ended' in part)) return part
    this.#place = 'behind'
    return { bytes: Buffer.from(']') }
  }
}

const noArray = { refusal: refuse('validation_failed', 'Expected one whole JSON array') }

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d
}
