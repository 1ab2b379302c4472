import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { limits } from '../../base/limits/limits.js'
import type { Answer } from '../routes/route.js'
import type { HeaderFields } from './answer-head.js'

export type Coding = 'br' | 'gzip'

/** Compression effort: for bytes that are compressed once and reused, or for each answer. */
type Effort = 'once' | 'each'

const codings: readonly Coding[] = ['br', 'gzip']
/** More codings than exist. */
const ITEMS_MAX = 32

/**
 * The coding that Accept-Encoding prefers (RFC 9110, 12.5.3): the one with the highest weight, brotli if both
 * are equal; undefined for none.
 */
export function codingOf(acceptEncoding: string): Coding | undefined {
  if (acceptEncoding === '') return undefined
  const weights = new Map<string, number>()
  for (const item of acceptEncoding.toLowerCase().split(',', ITEMS_MAX)) {
    const [, name = '', weight = '1'] =
      /^\s*([\w*-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/.exec(item) ?? []
    if (name !== '') weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight))
  }
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0
  const [best = 'br'] = [...codings].sort((one, other) => weightOf(other) - weightOf(one))
  const identityWeight = weights.get('identity') ?? 0
  return weightOf(best) > 0 && weightOf(best) >= identityWeight ? best : undefined
}

/** Sent with every compressible answer, compressed or not, so that caches keep one of each. */
const varies: HeaderFields[number] = ['Vary', 'Accept-Encoding']

/** The headers of an answer in a coding, or without one. */
export function codingHeaders(coding: Coding | undefined): HeaderFields {
  return coding === undefined ? [varies] : [varies, ['Content-Encoding', coding]]
}

/** Compresses answers in Node's thread pool, a few at a time; other answers are sent uncompressed. */
export class AnswerCoder {
  #busy = 0
  /** Compressed answers whose bytes never change, by the original bytes. */
  readonly #lasting = new WeakMap<Uint8Array, Map<Coding, Promise<Uint8Array>>>()

  /** The answer in the coding that the client prefers, if it is long enough. */
  async code(answer: Answer, acceptEncoding: string): Promise<Answer> {
    if (sizeOf(answer.body) < limits.compressedAnswerBytesMin) return answer
    const coding = codingOf(acceptEncoding)
    const coded = coding && (await this.#coded(answer, coding))
    const headers = [...(answer.headers ?? []), ...codingHeaders(coded && coding)]
    return { ...answer, headers, body: coded === undefined ? answer.body : [coded] }
  }

  async #coded({ body, lasting }: Answer, coding: Coding): Promise<Uint8Array | undefined> {
    const [first] = body
    if (lasting === true && first instanceof Uint8Array && body.length === 1) return this.#once(first, coding)
    // Checked before any bytes are copied, which matters under load.
    if (this.#busy >= limits.answerCompressionsMax) return undefined
    this.#busy += 1
    try {
      return await compress(
        typeof body === 'string' ? Buffer.from(body) : Buffer.concat(body),
        coding,
        'each',
      )
    } finally {
      this.#busy -= 1
    }
  }

  #once(bytes: Uint8Array, coding: Coding): Promise<Uint8Array> {
    const byCoding = this.#lasting.get(bytes) ?? new Map<Coding, Promise<Uint8Array>>()
    this.#lasting.set(bytes, byCoding)
    const coded = byCoding.get(coding) ?? compress(bytes, coding, 'once')
    byCoding.set(coding, coded)
    return coded
  }
}

function sizeOf(body: Answer['body']): number {
  if (typeof body === 'string') return Buffer.byteLength(body)
  return body.reduce((sum, part) => sum + part.length, 0)
}

const byBrotli = promisify<Uint8Array, object, Buffer>(brotliCompress)
const byGzip = promisify<Uint8Array, object, Buffer>(gzip)

function compress(bytes: Uint8Array, coding: Coding, effort: Effort): Promise<Buffer> {
  const options = optionsOf(effort)
  return coding === 'br' ? byBrotli(bytes, options) : byGzip(bytes, options)
}

/**
 * With effort `each`, compression takes about as long as reading the answer from the store. A window of 256
 * KiB keeps the memory of a brotli stream below 2 MiB. The chunk size determines how often the front thread
 * is called.
 */
function optionsOf(effort: Effort): object {
  const quality = effort === 'once' ? 9 : 4
  return {
    chunkSize: limits.compressedPieceBytes,
    level: effort === 'once' ? 9 : 3,
    params: {
      [constants.BROTLI_PARAM_QUALITY]: quality,
      ...(effort === 'each' && { [constants.BROTLI_PARAM_LGWIN]: 18 }),
    },
  }
}

/** Compresses a body that is produced while it is sent. */
export class StreamCoder {
  readonly #stream: ReturnType<typeof createGzip> | ReturnType<typeof createBrotliCompress>
  readonly #parts: Buffer[] = []
  #fail: (error: Error) => void = () => {}

  constructor(coding: Coding) {
    const options = optionsOf('each')
    this.#stream = coding === 'br' ? createBrotliCompress(options) : createGzip(options)
    this.#stream.on('data', (part: Buffer) => this.#parts.push(part))
    this.#stream.on('error', (error: Error) => this.#fail(error))
  }

  /** Adds a part. @returns the compressed bytes that are ready, often none */
  async add(part: string | Uint8Array): Promise<Uint8Array> {
    await this.#done((callback) => this.#stream.write(part, callback))
    return Buffer.concat(this.#parts.splice(0))
  }

  /** Adds the last part. @returns the rest of the compressed body */
  async end(part: string): Promise<Uint8Array> {
    await this.#done((callback) => {
      this.#stream.once('end', callback)
      this.#stream.end(part)
    })
    return Buffer.concat(this.#parts.splice(0))
  }

  /** Frees its memory. Needed because an interrupted answer never calls `end`. */
  close(): void {
    this.#stream.destroy()
  }

  #done(work: (callback: () => void) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fail = reject
      work(resolve)
    })
  }
}
