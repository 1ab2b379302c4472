import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { utf16Given } from '../../../strand/json.js'
import type { OtlpDecoder } from '../../../protocol/otlp-tasks.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { Answer, IngestRequest, Principal } from '../../routes/route.js'
import { bodyOf, readArray, RecordedBody, ReservedBody, type BodySource } from './array-body.js'
import { tooLarge } from '../body.js'
import { type BodyQueue, receiveBody } from '../body-queue.js'
import type { Exchange } from '../exchange.js'
import type { FrontSlices } from '../front-turn.js'
import type { IngestStream } from './commands.js'
import { JsonBody, type JsonShape } from './json-body.js'
import { SplitBody } from './split-body.js'
import { OtlpIngest } from './otlp.js'
import { LineIngest, tooLongLine } from './stream.js'
import { answerBroken, refuseWhole, WholeIngest } from './whole.js'
import type { OpenUploads } from '../../limits/uploads.js'

export interface IngestParts {
  shards: Shards
  slices: FrontSlices
  uploads: OpenUploads
  recordBytesMax: number
  decoder: OtlpDecoder
  /** Refused lines after which an upload is ended; 0 for no limit. */
  badLinesMax: number
  /** Counts refused lines by error code. */
  onRefused(code: string, count: number): void
  onError(error: unknown, requestId: string): void
}

/** Receives ingest streams: splits them into chunks as they arrive, with a few chunks in flight. */
export class IngestReceiver {
  readonly #parts: IngestParts

  constructor(parts: IngestParts) {
    this.#parts = parts
  }

  receive(exchange: Exchange, request: IngestRequest | Refusal, principal: Principal): void {
    if ('code' in request) {
      exchange.refuse(request)
      return
    }
    const { recordBytesMax, uploads, onError } = this.#parts
    // The text of a record can be longer than its canonical form.
    const lineBytesMax = recordBytesMax * 2 + limits.requestBytesMax
    const { gzip, event, otlp } = request
    const isBinary = otlp?.encoding === 'protobuf' || (event !== undefined && event.data !== 'json')
    receiveBody(exchange, { principal, uploads, gzip, isBinary, onError }, (body, memory) => {
      const { decoder, ...parts } = this.#parts
      const bodyBytesMax = gzip ? Infinity : (exchange.contentLength ?? Infinity)
      const stream = { ...parts, exchange, request, principal, memory, bodyBytesMax, lineBytesMax }
      if (otlp === undefined) return ingest(stream, body)
      return new OtlpIngest(stream, { otlp, decoder, memory }).run(body)
    })
  }
}

const expectedEvents = 'Expected a JSON array for a batch of CloudEvents, and an object for one'

/**
 * Reads a body by its format: one record, lines, or an array, alone or in an object, whose elements become
 * lines.
 */
async function ingest(stream: IngestStream, queue: BodyQueue): Promise<Answer | Refusal | undefined> {
  const { request, memory, lineBytesMax } = stream
  if (request.format === 'ndjson') return ingestLines(stream, queue)
  if (request.split !== undefined) return ingestSplit(stream, queue, request.split)
  // The data of a CloudEvent can have any format.
  if (request.event !== undefined) return new WholeIngest(stream).run(queue)
  const json = new JsonBody(queue, memory)
  const shape = await json.shape(lineBytesMax)
  if (typeof shape !== 'string') return answerBroken(shape)
  const lineStream: IngestStream = { ...stream, request: { ...request, format: 'ndjson' } }
  if (shape === 'lines') return ingestLines(lineStream, json)
  if (shape === 'endless') return ingestEndless(lineStream, json)
  const isOne = shape !== 'array'
  if (isOne && request.agent !== undefined && request.shape !== 'array') {
    return new WholeIngest(stream).run(json)
  }
  const bytesMax = request.onError === 'reject_all' ? limits.ingestAtomicBytesMax : limits.ingestArrayBytesMax
  const body = gatheredBody(stream, json, bytesMax)
  const refusal = json.isUtf16 ? utf16Given : shapeRefusal(request, shape)
  if (refusal !== undefined) return refuseWhole(stream, body, refusal)
  const read = await readArray(body, { ...stream, isOne, bytesMax })
  if ('malformed' in read) return refuseWhole(stream, body, read.malformed)
  if (!('lines' in read)) return answerBroken(read)
  if (body instanceof RecordedBody) body.drop()
  return ingestLines(lineStream, bodyOf(read.lines, queue))
}

/** Reads an object and ingests the members of one of its arrays. */
async function ingestSplit(
  stream: IngestStream,
  queue: BodyQueue,
  split: NonNullable<IngestRequest['split']>,
): Promise<Answer | Refusal | undefined> {
  const { request } = stream
  const body = gatheredBody(stream, queue, limits.ingestArrayBytesMax)
  const splitting = { ...split, largeAsText: request.integers === 'text' }
  const lines = new SplitBody(body, { ...stream, splitting })
  const fault = await lines.read()
  if (fault !== undefined) {
    return 'malformed' in fault ? refuseWhole(stream, body, fault.malformed) : answerBroken(fault)
  }
  if (body instanceof RecordedBody) body.drop()
  return ingestLines({ ...stream, request: { ...request, format: 'ndjson' } }, lines)
}

/**
 * A body that is read as a whole and then written, with a copy if it is stored when it is refused. What is made
 * of it takes at most as much as itself: all of it again (on_error=reject_all), or a chunk and an unfinished line.
 */
function gatheredBody(
  { request, memory, bodyBytesMax, lineBytesMax }: IngestStream,
  source: BodySource,
  bytesMax: number,
): BodySource {
  const bodyBytes = Math.min(bodyBytesMax, bytesMax)
  const isKept = request.onError === 'keep'
  const copyBytes = isKept ? Math.min(bodyBytes, limits.ingestAtomicBytesMax) : 0
  const lineBytes = request.onError === 'reject_all' ? bodyBytes : limits.ingestChunkBytes + 2 * lineBytesMax
  const bytes = bodyBytes + copyBytes + Math.min(bodyBytes, lineBytes)
  const body = new ReservedBody(source, { memory, bytes })
  return isKept ? new RecordedBody(body, { memory, bodyBytesMax }) : body
}

/** An error if the route does not accept JSON of this shape. */
function shapeRefusal({ agent, shape, once }: IngestRequest, found: JsonShape): Refusal | undefined {
  const isAccepted =
    found === 'array' ? shape !== 'one' : found === 'object' && shape !== 'array' && agent === undefined
  if (isAccepted) return undefined
  const detail =
    once === 'event'
      ? expectedEvents
      : 'Expected JSON objects {agent, data, type?}: one, an array, or one per line'
  return refuse('validation_failed', detail)
}

/** Reads lines of which the first is too long; 413 if it is the only line. */
async function ingestEndless(stream: IngestStream, body: BodySource): Promise<Answer | Refusal | undefined> {
  const { request, lineBytesMax } = stream
  if (request.onError === 'reject_all') return tooLongLine(lineBytesMax)
  const answer = await ingestLines(stream, body)
  if (request.onError === 'keep' || answer === undefined || !('code' in answer)) return answer
  const isOnlyLine = answer.code === 'ingest_rejected' && answer.extra?.['rejected'] === 1
  return isOnlyLine ? tooLarge(lineBytesMax) : answer
}

function ingestLines(stream: IngestStream, body: BodySource): Promise<Answer | Refusal | undefined> {
  const all = stream.request.onError === 'reject_all'
  return all ? new WholeIngest(stream).run(body) : new LineIngest(stream).run(body)
}
