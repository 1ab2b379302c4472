import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { LineSplitter, type LineChunk } from '../../../base/line-splitter.js'
import { sentBy, type Outcome } from '../../../protocol/messages.js'
import { isBlank } from '../../../strand/json-scanner.js'
import { replayedHeaders } from '../../routes/answers.js'
import type { Answer } from '../../routes/route.js'
import type { BodySource, RefusedLine } from './array-body.js'
import { commandsOf, keepingCommand, summaryOf, type IngestStream, type ShardCommand } from './commands.js'
import { answerExport } from './otlp-answers.js'
import { IngestTotals } from './summary.js'

/** Bytes of a body that are split into lines in one slice of the front thread. */
const SLICE_BYTES = 65_536

const noBytes = Buffer.alloc(0)

/**
 * The more severe of two refusals. `outcome_unknown` is reported even if other shards wrote nothing, because
 * the outcome of the whole call is then unknown.
 */
export function moreSevere(known: Refusal | undefined, next: Refusal): Refusal {
  return known === undefined || next.code === 'outcome_unknown' ? next : known
}

/** 413 for a line that is too long to be parsed. */
export function tooLongLine(lineBytesMax: number): Refusal {
  return refuse('too_large', `Expected a line of at most ${lineBytesMax} bytes`)
}

/** Writes lines as they arrive; skips invalid ones and lists them in the summary. */
export class LineIngest {
  readonly #stream: IngestStream
  readonly #splitter: LineSplitter
  readonly #totals: IngestTotals
  #inFlight = 0
  #index = 0
  /** The first line that on_error=keep did not store because it is too long. */
  #tooLong: number | undefined
  #refusal: Refusal | undefined
  /** Wakes the caller that waits for fewer commands in flight. */
  #wake: (() => void) | undefined

  constructor(stream: IngestStream) {
    this.#stream = stream
    const { request, lineBytesMax, memory } = stream
    const lines = request.once === undefined ? limits.ingestChunkLines : limits.ingestDedupeLinesMax
    const keptBytesMax = request.onError === 'keep' ? limits.ingestAtomicBytesMax : 0
    const splitting = { bytes: limits.ingestChunkBytes, lines, lineBytesMax, keptBytesMax }
    this.#splitter = new LineSplitter(splitting, memory)
    this.#totals = new IngestTotals(stream.onRefused)
  }

  /** Reads and ingests the body. @returns the answer; undefined if the client has disconnected */
  async run(body: BodySource): Promise<Answer | Refusal | undefined> {
    let part: Awaited<ReturnType<BodySource['next']>>
    do {
      part = await body.next()
      if ('gone' in part) return undefined
      if ('refused' in part)
        for (const line of part.refused) if (!this.#stopped(body)) await this.#refuseLine(line, body)
      if ('refusal' in part) this.#refusal ??= part.refusal
      else await this.#split('bytes' in part ? part.bytes : undefined, body)
    } while ('bytes' in part && this.#refusal === undefined)
    await this.#untilInFlight(0)
    const { interruption: broken } = body
    if (broken !== undefined && 'gone' in broken) return undefined
    if (this.#refusal !== undefined) return this.#withCounts(this.#refusal)
    return answerTotals(this.#stream, this.#totals, this.#tooLong)
  }

  /** Splits bytes, or the end of the body, into chunks in slices of the front thread, and sends them. */
  async #split(bytes: Buffer | undefined, body: BodySource): Promise<void> {
    const { slices, request } = this.#stream
    const length = bytes?.length ?? 0
    // A decoded part is cut as a whole, so that its chunks need not be copied.
    const sliceBytes = request.otlp === undefined ? SLICE_BYTES : limits.otlpPartBytesMax
    for (let at = 0; at < length; at += sliceBytes) {
      const piece = bytes?.subarray(at, at + sliceBytes) ?? noBytes
      const chunks = await slices.run(() => this.#splitter.push(piece))
      for (const chunk of chunks) await this.#send(chunk, body)
      if (this.#refusal !== undefined) return
    }
    // Not with an idempotency key: if the upload is sent again, it must be split into the same chunks.
    const early = this.#inFlight === 0 && request.idempotencyKey === undefined
    const rest = bytes === undefined ? this.#splitter.end() : early ? this.#splitter.flushLines() : undefined
    if (rest !== undefined) await this.#send(rest, body)
  }

  /** Sends a chunk. Its bytes are counted until its commands wait for their shards. */
  async #send(chunk: LineChunk, body: BodySource): Promise<void> {
    const { memory } = this.#stream
    const { length } = chunk.bytes
    if (this.#stopped(body) || !memory.add(length)) {
      // The memory limit may just have ended the upload.
      this.#stopped(body)
      return
    }
    if (chunk.isLong === true) await this.#refuseLong(chunk, body)
    else await this.#dispatch(chunk, body)
    memory.release(length)
  }

  async #refuseLong(chunk: LineChunk, body: BodySource): Promise<void> {
    const { request, lineBytesMax } = this.#stream
    if (chunk.bytes.length === 0 && request.onError === 'keep') this.#tooLong ??= chunk.firstLine
    await this.#refuseLine({ ...chunk, agent: '', refusal: tooLongLine(lineBytesMax) }, body)
  }

  /** Refuses a line, or stores it if its bytes are known. */
  async #refuseLine({ agent, refusal, ...chunk }: RefusedLine, body: BodySource): Promise<void> {
    if (chunk.bytes.length === 0) {
      this.#totals.addFault({ line: chunk.firstLine, agent, refusal })
      return
    }
    const index = this.#index++
    const keeping = { refusal, index, agent }
    const command = await this.#stream.slices.run(() => keepingCommand(this.#stream, chunk, keeping))
    await this.#sendCommands([command], index, body)
  }

  async #dispatch(chunk: LineChunk, body: BodySource): Promise<void> {
    const { slices } = this.#stream
    const index = this.#index++
    // The first chunk is always sent, even if blank: its shard checks whether the agent can be written to.
    if (index > 0 && (await slices.run(() => isBlank(chunk.bytes)))) return
    const { parts, faults } = await slices.run(() => commandsOf(this.#stream, { chunk, index }))
    for (const fault of faults) this.#totals.addFault(fault)
    await this.#sendCommands(parts, index, body)
  }

  async #sendCommands(parts: readonly ShardCommand[], index: number, body: BodySource): Promise<void> {
    const { request, shards, principal } = this.#stream
    // If the first chunk is refused, nothing may be written, so the others wait for its answer.
    const waitsForFirst = request.ifMatch !== undefined || request.idempotencyKey !== undefined
    await this.#untilInFlight(index === 1 && waitsForFirst ? 0 : limits.ingestChunksInFlightMax - 1)
    if (this.#stopped(body)) return
    // Counted first, because a shard with a full queue answers synchronously.
    this.#inFlight += parts.length
    for (const { shard, command } of parts) {
      shards.sendTo(shard, sentBy(principal.id, command), (outcome) => this.#done(outcome))
    }
  }

  /** Whether to stop writing; sets `#refusal` to the reason. */
  #stopped({ interruption: broken }: BodySource): boolean {
    const { badLinesMax } = this.#stream
    if (broken !== undefined && 'refusal' in broken) this.#refusal ??= broken.refusal
    if (badLinesMax > 0 && this.#totals.rejected > badLinesMax) {
      const detail = `More than ${badLinesMax} lines were refused: the rest of the upload was not read`
      this.#refusal ??= refuse('too_many_bad_lines', detail)
    }
    return this.#refusal !== undefined || broken !== undefined
  }

  #done(outcome: Outcome): void {
    this.#inFlight--
    this.#wake?.()
    if (outcome.kind === 'ingested') this.#totals.add(outcome)
    else if ('code' in outcome) this.#refusal = moreSevere(this.#refusal, outcome)
  }

  async #untilInFlight(commandsMax: number): Promise<void> {
    while (this.#inFlight > commandsMax) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  /** Adds the counts to a refusal, because lines that were already written stay. */
  #withCounts(refusal: Refusal): Refusal {
    return { ...refusal, extra: { ...refusal.extra, ...this.#totals.counts() } }
  }
}

/**
 * The answer with the summary of an ingest. A refusal if lines were refused and none was accepted, or if
 * on_error=keep could not store a line: a client that checks only the status must not believe that all was
 * accepted.
 * @param tooLong the first line that was not stored because it is too long
 */
export function answerTotals(stream: IngestStream, totals: IngestTotals, tooLong?: number): Answer | Refusal {
  if (stream.request.otlp !== undefined) return answerExport(stream.request, totals)
  const summary = summaryOf(stream, totals)
  const lost = totals.rejected - totals.kept
  const isLost = stream.request.onError === 'keep' ? lost > 0 : totals.accepted === 0 && lost > 0
  if (isLost) return refusalOf(totals, summary, tooLong)
  const headers = totals.replayed ? replayedHeaders : []
  return { status: 200, body: JSON.stringify(summary), headers }
}

/**
 * A refusal caused by the server, such as a clock that is behind, keeps its own code: the same upload can
 * succeed later.
 */
function refusalOf(totals: IngestTotals, summary: object, tooLong: number | undefined): Refusal {
  const extra = { ...summary }
  const serverCode = totals.codes().find((code) => statusOf({ code, detail: '' }) >= 500)
  if (serverCode !== undefined)
    return refuse(serverCode, 'The server could not write the lines, try again', { extra })
  if (tooLong !== undefined) {
    const detail = `Expected lines of at most ${limits.ingestAtomicBytesMax} bytes, got a longer one (line ${tooLong})`
    return refuse('too_large', detail, { extra: totals.counts() })
  }
  const lost = totals.rejected - totals.kept
  return refuse('ingest_rejected', `Could not write ${lost} ${lost === 1 ? 'line' : 'lines'}`, { extra })
}
