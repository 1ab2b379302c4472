import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { LineSplitter, type LineChunk } from '../../../base/line-splitter.js'
import { sentBy, type Outcome } from '../../../protocol/messages.js'
import { isBlank } from '../../../strand/json-scanner.js'
import { replayedHeaders } from '../../routes/answers.js'
import type { Answer } from '../../routes/route.js'
import type { BodySource } from './array-body.js'
import type { BodyPart } from '../body-queue.js'
import { commandsOf, keepingCommand, summaryOf, type IngestStream, type ShardCommand } from './commands.js'
import { IngestTotals } from './summary.js'

/** Bytes of a body that are cut into lines in one slice of the front thread. */
const SLICE_BYTES = 65_536

const noBytes = Buffer.alloc(0)

/**
 * Of the refusals of several shards the one that the caller has to know: where one shard did nothing and of another nobody
 * knows what it did, nobody knows what the call did.
 */
export function graver(known: Refusal | undefined, next: Refusal): Refusal {
  return known === undefined || next.code === 'outcome_unknown' ? next : known
}

/** 413 for a line that is too long to be read. */
export function tooLongLine(lineBytesMax: number): Refusal {
  return refuse('too_large', `Expected a line of at most ${lineBytesMax} bytes`)
}

/** Writes lines as they arrive; bad ones are left out and named in the summary. */
export class LineIngest {
  readonly #stream: IngestStream
  readonly #splitter: LineSplitter
  readonly #totals: IngestTotals
  /** Commands in flight. */
  #inFlight = 0
  #index = 0
  /** The first line that on_error=keep did not keep because it is too long. */
  #tooLong: number | undefined
  #refusal: Refusal | undefined
  /** Wakes whoever waits for fewer commands in flight. */
  #wake: (() => void) | undefined

  constructor(stream: IngestStream) {
    this.#stream = stream
    const { request, lineBytesMax, memory } = stream
    const lines = request.once === undefined ? limits.ingestChunkLines : limits.ingestOnceLinesMax
    const keptBytesMax = request.onError === 'keep' ? limits.ingestAtomicBytesMax : 0
    const cutting = { bytes: limits.ingestChunkBytes, lines, lineBytesMax, keptBytesMax }
    this.#splitter = new LineSplitter(cutting, memory)
    this.#totals = new IngestTotals(stream.onRefused)
  }

  /** Takes the body. @returns the answer; undefined when the client has gone */
  async run(body: BodySource): Promise<Answer | Refusal | undefined> {
    let part: BodyPart
    do {
      part = await body.next()
      if ('gone' in part) return undefined
      if ('refusal' in part) this.#refusal ??= part.refusal
      else await this.#take('bytes' in part ? part.bytes : undefined, body)
    } while ('bytes' in part && this.#refusal === undefined)
    await this.#untilInFlight(0)
    const gone = body.broken
    if (gone !== undefined && 'gone' in gone) return undefined
    if (this.#refusal !== undefined) return this.#told(this.#refusal)
    return answerTotals(this.#stream, this.#totals, this.#tooLong)
  }

  /** Takes bytes, or the end of the body, in slices of the front thread. */
  async #take(bytes: Buffer | undefined, body: BodySource): Promise<void> {
    const { slices, request } = this.#stream
    const length = bytes?.length ?? 0
    for (let at = 0; at < length; at += SLICE_BYTES) {
      const some = bytes?.subarray(at, at + SLICE_BYTES) ?? noBytes
      const chunks = await slices.run(() => this.#splitter.push(some))
      for (const chunk of chunks) await this.#send(chunk, body)
      if (this.#refusal !== undefined) return
    }
    // Not under a key: the same upload, sent again, must be cut into the same chunks.
    const early = this.#inFlight === 0 && request.idempotencyKey === undefined
    const rest = bytes === undefined ? this.#splitter.end() : early ? this.#splitter.flushLines() : undefined
    if (rest !== undefined) await this.#send(rest, body)
  }

  /** Sends a chunk, which is counted until its commands wait for their shards instead. */
  async #send(chunk: LineChunk, body: BodySource): Promise<void> {
    const { memory } = this.#stream
    const { length } = chunk.bytes
    if (this.#stopped(body) || !memory.add(length)) {
      // Ended by its memory just now, perhaps.
      this.#stopped(body)
      return
    }
    if (chunk.isLong === true) await this.#passLong(chunk, body)
    else await this.#dispatch(chunk, body)
    memory.give(length)
  }

  /** Refuses a line that is too long, or keeps it. */
  async #passLong(chunk: LineChunk, body: BodySource): Promise<void> {
    const { request, slices, lineBytesMax } = this.#stream
    const refusal = tooLongLine(lineBytesMax)
    if (chunk.bytes.length === 0) {
      this.#totals.addFault({ line: chunk.firstLine, agent: '', refusal })
      if (request.onError === 'keep') this.#tooLong ??= chunk.firstLine
      return
    }
    const index = this.#index++
    const command = await slices.run(() => keepingCommand(this.#stream, chunk, { refusal, index }))
    await this.#post([command], index, body)
  }

  async #dispatch(chunk: LineChunk, body: BodySource): Promise<void> {
    const { slices } = this.#stream
    const index = this.#index++
    // The first one is always sent, even if blank: its shard says whether the agent may be written to at all.
    if (index > 0 && (await slices.run(() => isBlank(chunk.bytes)))) return
    const { parts, faults } = await slices.run(() => commandsOf(this.#stream, { chunk, index }))
    for (const fault of faults) this.#totals.addFault(fault)
    await this.#post(parts, index, body)
  }

  async #post(parts: readonly ShardCommand[], index: number, body: BodySource): Promise<void> {
    const { request, shards, principal } = this.#stream
    // If the first chunk is refused, nothing may be written, so the others wait for its answer.
    const first = request.ifMatch !== undefined || request.idempotencyKey !== undefined
    await this.#untilInFlight(index === 1 && first ? 0 : limits.ingestChunksInFlightMax - 1)
    if (this.#stopped(body)) return
    // Counted before: a shard with a full queue answers at once.
    this.#inFlight += parts.length
    for (const { shard, command } of parts) {
      shards.sendTo(shard, sentBy(principal.id, command), (outcome) => this.#done(outcome))
    }
  }

  /** Whether nothing more is to be written, and why. */
  #stopped({ broken }: BodySource): boolean {
    const { badLinesMax } = this.#stream
    if (broken !== undefined && 'refusal' in broken) this.#refusal ??= broken.refusal
    if (badLinesMax > 0 && this.#totals.rejected > badLinesMax) {
      this.#refusal ??= refuse('too_many_bad_lines', `Expected at most ${badLinesMax} lines that are refused`)
    }
    return this.#refusal !== undefined || broken !== undefined
  }

  #done(outcome: Outcome): void {
    this.#inFlight--
    this.#wake?.()
    if (outcome.kind === 'ingested') this.#totals.add(outcome)
    else if ('code' in outcome) this.#refusal = graver(this.#refusal, outcome)
  }

  async #untilInFlight(most: number): Promise<void> {
    while (this.#inFlight > most) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  /** What was written before stays, so a refusal says how far that was. */
  #told(refusal: Refusal): Refusal {
    return { ...refusal, extra: { ...refusal.extra, ...this.#totals.counts() } }
  }
}

/**
 * The answer with the summary of an ingest; a refusal if nothing was accepted and something refused, or if with
 * on_error=keep something could not be kept: a client that looks only at the status must not think that it was taken.
 * @param tooLong the first line that was not kept because it is too long
 */
export function answerTotals(stream: IngestStream, totals: IngestTotals, tooLong?: number): Answer | Refusal {
  const summary = summaryOf(stream, totals)
  const lost = totals.rejected - totals.kept
  const isLost = stream.request.onError === 'keep' ? lost > 0 : totals.accepted === 0 && lost > 0
  if (isLost) return refusalOf(totals, summary, tooLong)
  const headers = totals.replayed ? replayedHeaders : []
  return { status: 200, body: JSON.stringify(summary), headers }
}

/**
 * A refusal for a reason of the server, such as a clock that is behind, is answered with its own code: the same upload
 * can succeed later.
 */
function refusalOf(totals: IngestTotals, summary: object, tooLong: number | undefined): Refusal {
  const extra = { ...summary }
  const passing = totals.codes().find((code) => statusOf({ code, detail: '' }) >= 500)
  if (passing !== undefined)
    return refuse(passing, 'The server could not take the lines, try again', { extra })
  if (tooLong !== undefined) {
    const detail = `Expected lines of at most ${limits.ingestAtomicBytesMax} bytes, got a longer one (line ${tooLong})`
    return refuse('too_large', detail, { extra: totals.counts() })
  }
  const lost = totals.rejected - totals.kept
  return refuse('ingest_rejected', `Expected lines that can be written, got ${lost} that cannot`, { extra })
}
