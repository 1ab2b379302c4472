import { asBuffer } from '../../../base/bytes.js'
import { refuse, refusalOf, type Refusal } from '../../../base/errors.js'
import { GatheredBytes } from '../../../base/gathered-bytes.js'
import { limits } from '../../../base/limits/limits.js'
import type { OtlpDecoder, OtlpFault, OtlpPart, OtlpPosition } from '../../../protocol/otlp-tasks.js'
import type { Upload } from '../../limits/uploads.js'
import { agentRefusal } from '../../routes/parameters.js'
import type { Answer, IngestRequest } from '../../routes/route.js'
import { tooLarge } from '../body.js'
import type { BodyQueue } from '../body-queue.js'
import { bodyOf, RecordedBody, reserveFor, type BodySource, type BrokenBody } from './array-body.js'
import type { IngestStream } from './commands.js'
import { LineIngest } from './stream.js'
import { answerBroken, refuseWhole } from './whole.js'

interface OtlpParts {
  otlp: NonNullable<IngestRequest['otlp']>
  decoder: OtlpDecoder
  memory: Upload
}

/** Bytes of lines for each byte of a small request: its records repeat the resource. */
const LINES_PER_BYTE = 8

/**
 * Ingests an OTLP request (docs/adr/0049-otlp.md): reads it as a whole, because nothing may be written before
 * it is known to be one, has it decoded to lines part by part in threads of the pool, and writes the lines.
 * The memory for all of that is reserved before the first part is decoded.
 */
export class OtlpIngest {
  readonly #stream: IngestStream
  readonly #parts: OtlpParts
  /** 1 when the request was cancelled. */
  readonly #gone = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  /** Bytes of the body, as they are counted. */
  #bodyBytes = 0
  /** The most bytes of the lines of a part, and of all that is in memory beside the body. */
  #linesBytesMax = 0
  #besidesBody = 0

  constructor(stream: IngestStream, parts: OtlpParts) {
    // However many records are invalid, the others are written: their number is bounded.
    this.#stream = { ...stream, badLinesMax: 0 }
    this.#parts = parts
  }

  /** @returns the answer; undefined if the client has disconnected */
  async run(body: BodyQueue): Promise<Answer | Refusal | undefined> {
    const interrupt = () => Atomics.store(this.#gone, 0, 1)
    body.onInterrupted = interrupt
    const whole = await this.#read(body)
    if (!('bytes' in whole)) return answerBroken(whole)
    const first = await this.#decode(whole.bytes)
    if (body.interruption !== undefined) return answerBroken(body.interruption)
    if ('lines' in first) return this.#write(first, body)
    const isKept = this.#stream.request.onError === 'keep' && first.code === 'validation_failed'
    if (!isKept || !('body' in first)) return first
    const { code, detail } = first
    const recorded = new RecordedBody(bodyOf(asBuffer(first.body), body), this.#stream)
    return refuseWhole(this.#stream, recorded, refuse(code, detail))
  }

  /**
   * Reads the body. A large one waits for memory first, and the rest of it is not received in the meantime;
   * a small one waits when it was read.
   */
  async #read(body: BodyQueue): Promise<{ bytes: Buffer } | BrokenBody> {
    const { otlp, memory } = this.#parts
    // JSON is parsed as a whole, and takes many times its bytes.
    const bytesMax = otlp.encoding === 'json' ? limits.ingestAtomicBytesMax : limits.ingestArrayBytesMax
    let isReserved = false
    const gathered = new GatheredBytes({ memory, bytesMax })
    for (;;) {
      const part = await body.next()
      if ('gone' in part || 'refusal' in part) return part
      const length = gathered.length + ('bytes' in part ? part.bytes.length : 0)
      if (length > bytesMax) return { refusal: tooLarge(bytesMax) }
      const isWhole = 'ended' in part
      if (!isReserved && (isWhole || length > limits.smallBodyBytesMax)) {
        const expectedBytes = isWhole ? length : Math.min(this.#stream.bodyBytesMax, bytesMax)
        this.#sizeFor(expectedBytes)
        const bytes = this.#besidesBody + (isWhole ? 0 : expectedBytes)
        const broken = await reserveFor(body, { memory, bytes })
        if (broken !== undefined) return broken
        isReserved = true
      }
      if (!isWhole) gathered.addOwn(part.bytes)
      else {
        this.#bodyBytes = gathered.capacity
        memory.keep(this.#bodyBytes + this.#besidesBody)
        return { bytes: gathered.bytes }
      }
    }
  }

  /** Sets the bytes that are needed beside a body: for lines, chunks of them, and refused records. */
  #sizeFor(length: number): void {
    const { lineBytesMax, request } = this.#stream
    this.#linesBytesMax = Math.min(limits.otlpPartBytesMax, Math.max(lineBytesMax, LINES_PER_BYTE * length))
    const chunks = limits.ingestChunksInFlightMax * limits.ingestChunkBytes
    const kept = request.onError === 'keep' ? limits.ingestAtomicBytesMax : 0
    this.#besidesBody = this.#linesBytesMax + chunks + kept
  }

  /** Writes the lines of all parts. */
  #write(first: OtlpPart, body: BodyQueue): Promise<Answer | Refusal | undefined> {
    const { request } = this.#stream
    const { agent } = first
    // Lines of one agent need not be searched for theirs.
    const isKnown = agent !== undefined && agentRefusal(this.#stream, agent) === undefined
    const known = isKnown ? { ...request, otlp: { ...this.#parts.otlp, agent } } : request
    return new LineIngest({ ...this.#stream, request: known }).run(this.#linesOf(first, body))
  }

  /** The lines of all parts; a part is decoded when the one before it was sent to its shards. */
  #linesOf(first: OtlpPart, body: BodyQueue): BodySource {
    const parts = this.#partsFrom(first)
    return {
      get interruption() {
        return body.interruption
      },
      async next() {
        const { value } = await parts.next()
        return body.interruption ?? value ?? { ended: true }
      },
    }
  }

  async *#partsFrom(first: OtlpPart): AsyncGenerator<LinesOfPart, undefined> {
    for (let part = first; ;) {
      const { next, body } = part
      // The last part needs no body any more.
      if (body === undefined) {
        this.#parts.memory.keep(this.#besidesBody)
        this.#parts.memory.release(this.#bodyBytes)
      }
      const refused = part.refused.map(({ line, agent, bytes, code, detail }) => {
        return { firstLine: line, agent, bytes: asBuffer(bytes), refusal: refuse(code, detail) }
      })
      yield { bytes: asBuffer(part.lines), refused }
      if (next === undefined || body === undefined) return undefined
      const found = await this.#decode(body, next)
      if (!('lines' in found)) {
        yield { refusal: refuse(found.code, found.detail) }
        return undefined
      }
      part = found
    }
  }

  /** Decodes the first part, or the one that begins at `from`. */
  async #decode(body: Uint8Array, from?: OtlpPosition): Promise<OtlpPart | OtlpFault | Refusal> {
    const { otlp, decoder } = this.#parts
    const { lineBytesMax: recordBytesMax, request, exchange } = this.#stream
    const keeps = request.onError === 'keep'
    const sizes = { linesBytesMax: this.#linesBytesMax, recordBytesMax, keeps }
    const task = { ...otlp, body, ...sizes, ...(from !== undefined && { from }) }
    try {
      return await decoder.decode({ task, owner: exchange.owner, gone: this.#gone })
    } catch (error) {
      return refusalOf(error)
    }
  }
}

type LinesOfPart = Exclude<Awaited<ReturnType<BodySource['next']>>, { ended: true }>
