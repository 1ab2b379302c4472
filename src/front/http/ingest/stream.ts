import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { LineSplitter, type LineChunk } from '../../../base/line-splitter.js'
import { sentBy, type Outcome } from '../../../protocol/messages.js'
import { isBlank } from '../../../strand/json-scanner.js'
import type { Answer } from '../../routes/route.js'
import type { BodySource, BrokenBody, RefusedLine, SourcePart } from './array-body.js'
import { commandsOf, keepingCommand, type ShardCommand } from './commands.js'
import type { IngestStream } from './source.js'
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
  #refusal: Refusal | undefined
  /** Wakes the caller that waits for fewer commands in flight. */
  #wake: (() => void) | undefined

  constructor(stream: IngestStream) {
    this.#stream = stream
    const { options, lineBytesMax, memory } = stream
    const lines = options.once === undefined ? limits.ingestChunkLines : limits.ingestDedupeLinesMax
    const keptBytesMax = options.onError === 'keep' ? limits.ingestAtomicBytesMax : 0
    const splitting = { bytes: limits.ingestChunkBytes, lines, lineBytesMax, keptBytesMax }
    this.#splitter = new LineSplitter(splitting, memory)
    this.#totals = new IngestTotals(stream.onRefused)
  }

  /** Reads and ingests the body. @returns the answer; undefined if the client has disconnected */
  async run(body: BodySource): Promise<Answer | Refusal | undefined> {
    let part: SourcePart
    do {
      part = await body.next()
      if ('gone' in part) return undefined
      if ('refused' in part)
        for (const line of part.refused) if (!this.#stopped(body)) await this.#refuseLine(line, body)
      if ('refusal' in part) this.#refusal ??= part.refusal
      else await this.#split(part, body)
    } while ('bytes' in part && this.#refusal === undefined)
    await this.#untilInFlight(0)
    const { interruption: broken } = body
    if (broken !== undefined && 'gone' in broken) return undefined
    const refusal = this.#refusal
    if (refusal === undefined) return this.#stream.source.answer(this.#totals, this.#stream)
    // Lines that were already written stay.
    return { ...refusal, extra: { ...refusal.extra, ...this.#totals.counts() } }
  }

  /** Splits a part, or the end of the body, into chunks in slices of the front thread, and sends them. */
  async #split(part: Exclude<SourcePart, BrokenBody>, body: BodySource): Promise<void> {
    const { slices, options } = this.#stream
    const bytes = 'bytes' in part ? part.bytes : noBytes
    // Whole lines are cut in one slice, so that their chunks need not be copied.
    const sliceBytes = 'refused' in part ? bytes.length : SLICE_BYTES
    for (let at = 0; at < bytes.length; at += sliceBytes) {
      const piece = bytes.subarray(at, at + sliceBytes)
      const chunks = await slices.run(() => this.#splitter.push(piece))
      for (const chunk of chunks) await this.#send(chunk, body)
      if (this.#refusal !== undefined) return
    }
    // Not with an idempotency key: if the upload is sent again, it must be split into the same chunks.
    const early = this.#inFlight === 0 && options.idempotency === undefined
    const rest = 'ended' in part ? this.#splitter.end() : early ? this.#splitter.flushLines() : undefined
    if (rest !== undefined) await this.#send(rest, body)
  }

  /** Sends a chunk. Its bytes are counted until its commands wait for their shards. */
  async #send(chunk: LineChunk, body: BodySource): Promise<void> {
    const { memory } = this.#stream
    const { length } = chunk.bytes
    if (this.#stopped(body) || !memory.reserve(length)) {
      // The memory limit may just have ended the upload.
      this.#stopped(body)
      return
    }
    if (chunk.isLong === true) await this.#refuseLong(chunk, body)
    else await this.#dispatch(chunk, body)
    memory.release(length)
  }

  async #refuseLong(chunk: LineChunk, body: BodySource): Promise<void> {
    const { options, lineBytesMax } = this.#stream
    if (chunk.bytes.length === 0 && options.onError === 'keep') this.#totals.tooLong ??= chunk.firstLine
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
    const { options, shards, principal } = this.#stream
    // If the first chunk is refused, nothing may be written, so the others wait for its answer.
    const waitsForFirst = options.ifMatch !== undefined || options.idempotency !== undefined
    await this.#untilInFlight(index === 1 && waitsForFirst ? 0 : limits.ingestChunksInFlightMax - 1)
    // A chunk that waits for the next owner is written although the last owner did not write the one before.
    if (parts.some(({ shard }) => !shards.linkOf(shard).serving)) await this.#untilInFlight(0)
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
}
