import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { asBuffer } from '../base/bytes.js'
import { refuse, refusalOf, statusOf, type Refusal } from '../base/errors.js'
import { GatheredBytes } from '../base/gathered-bytes.js'
import { limits } from '../base/limits/limits.js'
import type { BodyQueue } from '../front/http/body-queue.js'
import { tooLarge } from '../front/http/body.js'
import {
  bodyOf,
  RecordedBody,
  reserveFor,
  type BrokenBody,
  type SourcePart,
} from '../front/http/ingest/array-body.js'
import type { IngestStream, LineSource, SourceContent } from '../front/http/ingest/source.js'
import type { IngestTotals } from '../front/http/ingest/summary.js'
import { replayedHeaders } from '../front/routes/answers.js'
import { fieldOf, otlpRefusal } from '../front/routes/otlp.js'
import { agentRefusal } from '../front/routes/parameters.js'
import type { Answer, IngestOptions } from '../front/routes/route.js'
import { type OtlpFormat, protobufType } from '../wire/otlp.js'
import type { OtlpDecoder, OtlpFault, OtlpPart, OtlpPosition } from './tasks.js'

/** OTLP requests, whose records become lines (docs/adr/0049-otlp.md). However many are invalid, the others are written. */
export function otlpSource(format: OtlpFormat, decoder: OtlpDecoder): LineSource {
  return {
    isBinary: format.encoding === 'protobuf',
    isBounded: true,
    read: (body, stream) => new OtlpRequest(body, stream, { format, decoder }).read(),
    answer: (totals, { options }) => answerOf(totals, format, options),
  }
}

/** Bytes of lines for each byte of a small request: its records repeat the resource. */
const LINES_PER_BYTE = 8

/**
 * One request: it is read as a whole, because nothing may be written before it is known to be one, and is
 * decoded to lines part by part in threads of the pool (src/otlp/lines.ts). The memory for all of that is
 * reserved before the first part is decoded.
 */
class OtlpRequest {
  readonly #body: BodyQueue
  readonly #stream: IngestStream
  readonly #parts: { format: OtlpFormat; decoder: OtlpDecoder }
  /** 1 when the request was cancelled. */
  readonly #gone = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  /** Bytes of the body, as they are counted. */
  #bodyBytes = 0
  /** The most bytes of the lines of a part, and of all that is in memory beside the body. */
  #linesBytesMax = 0
  #besidesBody = 0

  constructor(body: BodyQueue, stream: IngestStream, parts: { format: OtlpFormat; decoder: OtlpDecoder }) {
    this.#body = body
    this.#stream = stream
    this.#parts = parts
  }

  async read(): Promise<SourceContent> {
    this.#body.onInterrupted = () => Atomics.store(this.#gone, 0, 1)
    const whole = await this.#readWhole()
    if (!('bytes' in whole)) return whole
    const first = await this.#decode(whole.bytes)
    if (this.#body.interruption !== undefined) return this.#body.interruption
    if (!('lines' in first)) return this.#refused(first)
    const { agent } = first
    const lines = bodyOf(this.#partsFrom(first), this.#body)
    const isKnown = agent !== undefined && agentRefusal(this.#stream, agent) === undefined
    // Lines of one agent need not be searched for theirs.
    return isKnown ? { lines, target: { ...this.#stream.target, agent } } : { lines }
  }

  /**
   * Reads the body. A large one waits for memory first, and the rest of it is not received in the meantime;
   * a small one waits when it was read.
   */
  async #readWhole(): Promise<{ bytes: Buffer } | BrokenBody> {
    const { memory, bodyBytesMax } = this.#stream
    // JSON is parsed as a whole, and takes many times its bytes.
    const isJson = this.#parts.format.encoding === 'json'
    const bytesMax = isJson ? limits.ingestAtomicBytesMax : limits.ingestArrayBytesMax
    let isReserved = false
    const gathered = new GatheredBytes({ memory, bytesMax })
    for (;;) {
      const part = await this.#body.next()
      if ('gone' in part || 'refusal' in part) return part
      const length = gathered.length + ('bytes' in part ? part.bytes.length : 0)
      if (length > bytesMax) return { refusal: tooLarge(bytesMax) }
      const isWhole = 'ended' in part
      if (!isReserved && (isWhole || length > limits.smallBodyBytesMax)) {
        const expectedBytes = isWhole ? length : Math.min(bodyBytesMax, bytesMax)
        this.#sizeFor(expectedBytes)
        const bytes = this.#besidesBody + (isWhole ? 0 : expectedBytes)
        const broken = await reserveFor(this.#body, { memory, bytes })
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
    const { lineBytesMax } = this.#stream
    this.#linesBytesMax = Math.min(limits.otlpPartBytesMax, Math.max(lineBytesMax, LINES_PER_BYTE * length))
    const chunks = limits.ingestChunksInFlightMax * limits.ingestChunkBytes
    this.#besidesBody = this.#linesBytesMax + chunks + (this.#keeps ? limits.ingestAtomicBytesMax : 0)
  }

  get #keeps(): boolean {
    return this.#stream.options.onError === 'keep'
  }

  /** Decodes the first part, with which the whole request is checked, or the one that begins at `from`. */
  async #decode(body: Uint8Array, from?: OtlpPosition): Promise<OtlpPart | OtlpFault | Refusal> {
    const { decoder, format } = this.#parts
    const { signal, encoding } = format
    const { target, holder, lineBytesMax: recordBytesMax } = this.#stream
    const sizes = { linesBytesMax: this.#linesBytesMax, recordBytesMax, keeps: this.#keeps }
    const ofAll = target.agent !== undefined && { agent: target.agent }
    const task = { signal, encoding, ...ofAll, body, ...sizes, ...(from !== undefined && { from }) }
    try {
      return await decoder.decode({ task, holder, gone: this.#gone })
    } catch (error) {
      return refusalOf(error)
    }
  }

  /** A body that is not a request is stored as a whole, with on_error=keep. */
  #refused(fault: OtlpFault | Refusal): SourceContent {
    const isKept = this.#keeps && fault.code === 'validation_failed' && 'body' in fault
    if (!isKept) return { refusal: fault }
    const source = bodyOf([{ bytes: asBuffer(fault.body) }].values(), this.#body)
    const body = new RecordedBody(source, this.#stream)
    return { malformed: refuse(fault.code, fault.detail), body, agent: this.#keeper }
  }

  /** The lines of all parts; a part is decoded when the one before it was sent to its shards. */
  async *#partsFrom(first: OtlpPart): AsyncGenerator<SourcePart, undefined> {
    for (let part = first; ;) {
      const { next, body } = part
      // The last part needs no body any more.
      if (body === undefined) {
        this.#stream.memory.keep(this.#besidesBody)
        this.#stream.memory.release(this.#bodyBytes)
      }
      const refused = part.refused.map(({ line, agent, bytes, code, detail }) => ({
        firstLine: line,
        // A member `agent` of an OTLP message names no agent.
        agent: agent === '' ? this.#keeper : agent,
        bytes: asBuffer(bytes),
        refusal: refuse(code, detail),
      }))
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

  /** The agent that stores refused records without an agent, with on_error=keep. */
  get #keeper(): string {
    return this.#stream.target.rejectedAgent ?? ''
  }
}

/** Reasons in the answer to a request of which a part was refused. */
const REASONS_MAX = 3

/**
 * The answer to an OTLP request. A sender repeats nothing of a request of which a part was accepted, so the
 * request is refused if the server could not write a record now; also if none was accepted, or if
 * on_error=keep could not store one.
 */
function answerOf(totals: IngestTotals, format: OtlpFormat, { onError }: IngestOptions): Answer | Refusal {
  const lost = totals.rejected - totals.kept
  if (lost > 0) {
    const code = totals.codes().find((each) => statusOf(otlpRefusal(refuse(each, ''))) >= 500)
    if (code !== undefined || totals.accepted === 0 || onError === 'keep') {
      const detail = `Could not write ${lost} ${lost === 1 ? 'record' : 'records'}: ${reasonsOf(totals)}`
      return refuse(code ?? 'ingest_rejected', detail, { extra: totals.counts() })
    }
  }
  return { ...writtenAnswer(format, totals), headers: totals.replayed ? replayedHeaders : [] }
}

/**
 * The answer if records were written: a message in the encoding of the request (OTLP Specification, OTLP/HTTP
 * Response). It is empty if all were, and otherwise has the number of the others and the first reasons.
 */
function writtenAnswer({ signal, encoding }: OtlpFormat, totals: IngestTotals): Answer {
  const { kept } = totals
  const rejected = totals.rejected - kept
  const stored = kept === 0 ? '' : `${kept} refused records are stored as ingest/rejected; `
  const errorMessage = totals.rejected === 0 ? '' : stored + reasonsOf(totals)
  if (encoding === 'protobuf') {
    const body = errorMessage === '' ? [] : [partialSuccess(rejected, errorMessage)]
    return { status: 200, contentType: protobufType, body }
  }
  const counted = signal === 'logs' ? 'rejectedLogRecords' : 'rejectedSpans'
  const partial = { ...(rejected > 0 && { [counted]: String(rejected) }), errorMessage }
  return { status: 200, body: JSON.stringify(errorMessage === '' ? {} : { partialSuccess: partial }) }
}

/** Why records were refused: the first reasons, and how many more there are. */
function reasonsOf(totals: IngestTotals): string {
  const reasons = totals
    .many()
    .errors.slice(0, REASONS_MAX)
    .map(({ line, code, detail }) => `record ${line}: ${code}: ${detail}`)
  const more = totals.rejected - reasons.length
  return [...reasons, ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

/** The field `partial_success`, whose fields have the same numbers for logs and spans. */
function partialSuccess(rejected: number, errorMessage: string): Uint8Array {
  const writer = new BinaryWriter().uint32(fieldOf(1, 2)).fork()
  if (rejected > 0) writer.uint32(fieldOf(1, 0)).int64(rejected)
  return writer.uint32(fieldOf(2, 2)).string(errorMessage).join().finish()
}
