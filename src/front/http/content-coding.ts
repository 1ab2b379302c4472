import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { limits } from '../../base/limits/limits.js'
import type { Answer } from '../routes/route.js'
import type { HeaderFields } from './answer-head.js'

/** A way in which an answer can be compressed. */
export type Coding = 'br' | 'gzip'

/** How hard a compressor tries. */
type Effort = 'once' | 'each'

const codings: readonly Coding[] = ['br', 'gzip']
/** More ways of coding than there are names for. */
const ITEMS_MAX = 32

/**
 * The coding that a client asks for by Accept-Encoding (RFC 9110, 12.5.3): the one with the highest weight, brotli if both
 * have the same; undefined for none.
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
  const least = weights.get('identity') ?? 0
  return weightOf(best) > 0 && weightOf(best) >= least ? best : undefined
}

/** Sent with whatever could have been compressed, compressed or not: caches keep one for each. */
const varies: HeaderFields[number] = ['Vary', 'Accept-Encoding']

/** The headers of an answer in a coding, or in none. */
export function codingHeaders(coding: Coding | undefined): HeaderFields {
  return coding === undefined ? [varies] : [varies, ['Content-Encoding', coding]]
}

/** Compresses answers in threads of the platform, a few at a time; when more ask, the others get theirs as it is. */
export class AnswerCoder {
  #busy = 0
  /** Answers whose bytes stay the same, by these bytes. */
  readonly #lasting = new WeakMap<Uint8Array, Map<Coding, Promise<Uint8Array>>>()

  /** The answer in the coding that the client asks for, if it is long enough for that. */
  async code(answer: Answer, acceptEncoding: string): Promise<Answer> {
    if (sizeOf(answer.body) < limits.codedAnswerBytesMin) return answer
    const coding = codingOf(acceptEncoding)
    const coded = coding && (await this.#coded(answer, coding))
    const headers = [...(answer.headers ?? []), ...codingHeaders(coded && coding)]
    return { ...answer, headers, body: coded === undefined ? answer.body : [coded] }
  }

  async #coded({ body, lasting }: Answer, coding: Coding): Promise<Uint8Array | undefined> {
    const [first] = body
    if (lasting === true && first instanceof Uint8Array && body.length === 1) return this.#once(first, coding)
    // Before anything of it is copied: most answers come here where many ask at once.
    if (this.#busy >= limits.codedAnswersMax) return undefined
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
    const made = this.#lasting.get(bytes) ?? new Map<Coding, Promise<Uint8Array>>()
    this.#lasting.set(bytes, made)
    const coded = made.get(coding) ?? compress(bytes, coding, 'once')
    made.set(coding, coded)
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
 * What is compressed for every answer takes about as long as it takes to read it from the store. A window of 256 KiB
 * keeps the memory of a brotli stream below 2 MiB. The front thread is called once for each piece of what comes out.
 */
function optionsOf(effort: Effort): object {
  const quality = effort === 'once' ? 9 : 4
  return {
    chunkSize: limits.codedPieceBytes,
    level: effort === 'once' ? 9 : 3,
    params: {
      [constants.BROTLI_PARAM_QUALITY]: quality,
      ...(effort === 'each' && { [constants.BROTLI_PARAM_LGWIN]: 18 }),
    },
  }
}

/** Compresses a body that is made while it is sent. */
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

  /** Takes a part. @returns what is ready of the compressed body, often nothing */
  async add(part: string | Uint8Array): Promise<Uint8Array> {
    await this.#done((callback) => this.#stream.write(part, callback))
    return Buffer.concat(this.#parts.splice(0))
  }

  /** Takes the last part. @returns the rest of the compressed body */
  async end(part: string): Promise<Uint8Array> {
    await this.#done((callback) => {
      this.#stream.once('end', callback)
      this.#stream.end(part)
    })
    return Buffer.concat(this.#parts.splice(0))
  }

  /** Frees its memory; an answer that ends before its time never comes to `end`. */
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
