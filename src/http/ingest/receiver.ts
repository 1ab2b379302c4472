import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits.js'
import type { Shards } from '../../dispatch/shards.js'
import type { Answer, IngestRequest, Principal } from '../../routes/route.js'
import { ArrayBody, JsonBody, OneElement, type BodySource } from './array-body.js'
import { BodyQueue } from '../body-queue.js'
import { readBody, refuseRest } from '../body-stream.js'
import type { Exchange } from '../exchange.js'
import type { FrontSlices } from '../front-slices.js'
import type { IngestStream } from './commands.js'
import { LineIngest } from './stream.js'
import { WholeIngest } from './whole.js'
import type { OpenUploads } from '../uploads.js'

/** The parts that ingest works with. */
export interface IngestParts {
  shards: Shards
  slices: FrontSlices
  uploads: OpenUploads
  recordBytesMax: number
  /** Refused lines after which an upload is ended; 0 for any number. */
  badLinesMax: number
  /** Counts lines that were refused, by their code. */
  onRefused(code: string, count: number): void
  onError(error: unknown, requestId: string): void
}

/** Takes ingest streams: cuts them into chunks as they arrive, and has a few chunks in flight at once. */
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
    const upload = uploads.hold({ principal, owner: exchange.owner }, (refusal) => body.cut(refusal))
    const stream = { ...this.#parts, exchange, request, principal, memory: upload, lineBytesMax }
    const body = new BodyQueue(exchange, upload)
    const stopReading = readBody(exchange, { gzip: request.gzip, memory: upload }, body)
    take(stream, body)
      .then((answer) => {
        if (answer === undefined) return
        if ('code' in answer) refuseRest(exchange, answer)
        else exchange.answer(answer)
      })
      .catch((error: unknown) => {
        onError(error, exchange.requestId)
        refuseRest(
          exchange,
          refuse('internal_error', 'The server failed; its log says why under the request id'),
        )
      })
      .finally(() => {
        stopReading()
        upload.release()
      })
  }
}

const expectedEvents = 'Expected a JSON array for a batch of CloudEvents, and an object for one'

/** Reads a body as what it is: one record, lines, or an array, whose elements become lines. */
async function take(stream: IngestStream, queue: BodyQueue): Promise<Answer | Refusal | undefined> {
  const { request, slices, memory, lineBytesMax } = stream
  if (request.format === 'ndjson') return takeLines(stream, queue)
  if (request.shape === 'one' && request.agent !== undefined) return new WholeIngest(stream).run(queue)
  const json = new JsonBody(queue, memory)
  const isArray = await json.isArray(lineBytesMax)
  const isOne = request.shape === 'one' && !isArray
  if (isOne || (isArray && request.shape !== 'one')) {
    const body = new ArrayBody(isOne ? new OneElement(json) : json, {
      slices,
      elementsMax: isOne ? 1 : Infinity,
    })
    return takeLines({ ...stream, request: { ...request, format: 'ndjson' } }, body)
  }
  if (request.agent !== undefined && request.shape === undefined) return new WholeIngest(stream).run(json)
  return refuse(
    'validation_failed',
    request.once === 'event' ? expectedEvents : 'Expected a JSON array of {agent, data, type?}',
  )
}

function takeLines(stream: IngestStream, body: BodySource): Promise<Answer | Refusal | undefined> {
  const all = stream.request.onError === 'reject_all'
  return all ? new WholeIngest(stream).run(body) : new LineIngest(stream).run(body)
}
