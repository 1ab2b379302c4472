import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Shards } from '../dispatch/shards.js'
import type { IngestRequest, Principal } from '../routes/route.js'
import { BodyQueue } from './body-queue.js'
import { readBody, refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'
import type { FrontSlices } from './front-slices.js'
import { LineIngest } from './ingest-stream.js'
import { WholeIngest } from './ingest-whole.js'
import type { OpenUploads } from './uploads.js'

/** What ingest streams are taken with. */
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

/** Takes ingest streams: cuts them into chunks while they arrive and has a few chunks under way at once. */
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
    const stream = { ...this.#parts, exchange, request, principal, lineBytesMax }
    const whole = request.format === 'json' || request.onError === 'reject_all'
    const body = new BodyQueue(exchange)
    const release = uploads.hold(principal, (refusal) => body.cut(refusal))
    readBody(exchange, request.gzip, body)
    const taking = whole ? new WholeIngest(stream).run(body) : new LineIngest(stream).run(body)
    taking
      .then((answer) => {
        if (answer === undefined) return
        if ('code' in answer) refuseRest(exchange, answer)
        else exchange.answer(answer)
      })
      .catch((error: unknown) => {
        onError(error, exchange.requestId)
        refuseRest(exchange, refuse('internal_error', 'Expected the server to take the lines in'))
      })
      .finally(release)
  }
}
