import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { OpenTransfers } from '../../limits/transfers.js'
import type { Answer, IngestRequest, IngestSource, Principal } from '../../routes/route.js'
import { type BodyQueue, receiveBody } from '../body-queue.js'
import type { Exchange } from '../exchange.js'
import type { IngestStream, LineSource } from './source.js'
import { LineIngest } from './stream.js'
import { answerBroken, ingestAllOrNone, ingestRecord, refuseWhole } from './whole.js'

export interface IngestParts extends Pick<IngestStream, 'shards' | 'slices' | 'badLinesMax' | 'onRefused'> {
  transfers: OpenTransfers
  recordBytesMax: number
  /** The source of the lines of a format. */
  sourceOf(source: IngestSource): LineSource
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
    const { recordBytesMax, transfers, sourceOf, onError, ...parts } = this.#parts
    // The text of a record can be longer than its canonical form.
    const lineBytesMax = recordBytesMax * 2 + limits.requestBytesMax
    const { target, options } = request
    const { gzip } = options
    const source = sourceOf(request.source)
    const { isBinary = false, isBounded = false } = source
    receiveBody(exchange, { principal, transfers, gzip, isBinary, onError }, (body, memory) => {
      const bodyBytesMax = gzip ? Infinity : (exchange.contentLength ?? Infinity)
      const badLinesMax = isBounded ? 0 : parts.badLinesMax
      const sizes = { bodyBytesMax, lineBytesMax, badLinesMax }
      const { holder } = exchange
      return ingest({ ...parts, target, options, source, principal, holder, memory, ...sizes }, body)
    })
  }
}

/** Reads a body by its source, and writes what it consists of. */
async function ingest(stream: IngestStream, body: BodyQueue): Promise<Answer | Refusal | undefined> {
  const content = await stream.source.read(body, stream)
  if ('malformed' in content) return refuseWhole(stream, content)
  if ('record' in content) return ingestRecord(stream, content)
  if (!('lines' in content)) return answerBroken(content)
  const { lines, target = stream.target } = content
  const found = { ...stream, target }
  if (stream.options.onError === 'reject_all') return ingestAllOrNone(found, lines)
  return new LineIngest(found).run(lines)
}
