import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Shards } from '../dispatch/shards.js'
import type { CommandOf, IngestedOutcome, Outcome, WriteOptions } from '../protocol/messages.js'
import { answerOf, replayedHeaders, unexpected } from '../routes/answers.js'
import { withAccess } from '../routes/parameters.js'
import type { IngestRequest, Principal } from '../routes/route.js'
import type { IngestManySummary, IngestSummary } from '../wire/ingest.js'
import { tooLarge } from './body.js'
import { readBody, refuseRest, type BodySink } from './body-stream.js'
import type { Exchange } from './exchange.js'
import { addressLines } from './ingest-lines.js'
import { IngestSplitter, LINE_FEED, type LineChunk } from './ingest-splitter.js'
import { IngestTotals } from './ingest-summary.js'

/** Takes ingest streams: cuts them into chunks while they arrive and has a few chunks under way at once. */
export class IngestReceiver {
  readonly #shards: Shards
  readonly #recordBytesMax: number

  constructor(shards: Shards, recordBytesMax: number) {
    this.#shards = shards
    this.#recordBytesMax = recordBytesMax
  }

  receive(exchange: Exchange, request: IngestRequest | Refusal, principal: Principal): void {
    if ('code' in request) {
      exchange.refuse(request)
      return
    }
    // The text of a record can be longer than its canonical form.
    const lineBytesMax = this.#recordBytesMax * 2 + limits.requestBytesMax
    const stream = { exchange, request, principal, shards: this.#shards, lineBytesMax }
    const whole = request.format === 'json' || request.onError === 'reject_all'
    readBody(exchange, request.gzip, whole ? new WholeIngest(stream) : new LineIngest(stream))
  }
}

/** One ingest request and what it works with. */
interface IngestStream {
  exchange: Exchange
  request: IngestRequest
  principal: Principal
  shards: Shards
  lineBytesMax: number
}

/** A body that is taken as one: a single record, or lines that are written all or none. */
class WholeIngest implements BodySink {
  readonly #stream: IngestStream
  readonly #bytesMax: number
  readonly #parts: Buffer[] = []
  #bytes = 0

  constructor(stream: IngestStream) {
    this.#stream = stream
    this.#bytesMax = stream.request.format === 'json' ? stream.lineBytesMax : limits.ingestAtomicBytesMax
  }

  push(bytes: Buffer, more: () => void): void {
    this.#bytes += bytes.length
    if (this.#bytes > this.#bytesMax) {
      this.fail(tooLarge(this.#bytesMax))
      return
    }
    this.#parts.push(bytes)
    more()
  }

  fail(refusal: Refusal): void {
    refuseRest(this.#stream.exchange, refusal)
  }

  end(): void {
    if (!this.#stream.exchange.open) return
    const body = Buffer.concat(this.#parts)
    void (this.#stream.request.format === 'json' ? this.#one(body) : this.#allOrNone(body))
  }

  async #one(body: Buffer): Promise<void> {
    const { exchange, request, shards } = this.#stream
    const agent = request.agent ?? ''
    const options = optionsOf(this.#stream, 0)
    const command = withAccess(this.#stream, { kind: 'ingestOne' as const, agent, body, options })
    const answer = answerOf(await shards.ask(agent, command))
    if ('code' in answer) exchange.refuse(answer)
    else exchange.answer(answer)
  }

  /** Lines of several shards are looked at everywhere first: no shard writes before all have said yes. */
  async #allOrNone(body: Buffer): Promise<void> {
    if (linesOf(body) > limits.ingestAtomicLinesMax) {
      const detail = `Expected at most ${limits.ingestAtomicLinesMax} lines that are written all or none`
      this.#stream.exchange.refuse(refuse('too_large', detail))
      return
    }
    const { parts, faults } = commandsOf(this.#stream, { chunk: { bytes: body, firstLine: 1 }, index: 0 })
    const keyed = this.#stream.request.idempotencyKey !== undefined
    if (parts.length > 1 || faults.length > 0 || keyed) {
      // What the check refuses is not kept, so that it can be put right and sent again under its key.
      const checks = parts.map(({ shard, command }) => ({ shard, command: checkOf(command) }))
      const checked = await this.#totalsOf(checks, faults)
      if (checked === undefined) return
      if (checked.rejected > 0) return this.#reject(checked)
    }
    const writes = parts.map(({ shard, command }) => ({
      shard,
      command: { ...command, mode: 'reject' as const },
    }))
    const written = await this.#totalsOf(writes, [])
    if (written === undefined) return
    if (written.rejected > 0) this.#reject(written)
    else answerTotals(this.#stream, written)
  }

  /** What became of the commands, and of lines that went to no shard; undefined when a shard refused and it is answered. */
  async #totalsOf(
    parts: readonly ShardCommand[],
    faults: IngestedOutcome['faults'],
  ): Promise<IngestTotals | undefined> {
    const { exchange, shards } = this.#stream
    const totals = new IngestTotals()
    for (const fault of faults) totals.addFault(fault)
    const asked = parts.map(({ shard, command }) => shards.askOne(shard, command))
    for (const outcome of await Promise.all(asked)) {
      if (outcome.kind !== 'ingested') {
        exchange.refuse(unexpected(outcome))
        return undefined
      }
      totals.add(outcome)
    }
    return totals
  }

  #reject(totals: IngestTotals): void {
    totals.nothingWritten()
    const detail = `Expected every line to be valid, got ${totals.rejected} that are not`
    const extra = { ...summaryOf(this.#stream, totals) }
    this.#stream.exchange.refuse(refuse('ingest_rejected', detail, { extra }))
  }
}

/** Lines of a body, the last one counted though it need not end in a line feed. */
function linesOf(body: Buffer): number {
  let lines = body.at(-1) === LINE_FEED ? 0 : 1
  for (let at = body.indexOf(LINE_FEED); at !== -1; at = body.indexOf(LINE_FEED, at + 1)) lines++
  return lines
}

/** Lines that are written while they arrive; bad ones are left out and named in the summary. */
class LineIngest implements BodySink {
  readonly #stream: IngestStream
  readonly #splitter = new IngestSplitter({
    bytes: limits.ingestChunkBytes,
    lines: limits.ingestChunkLines,
  })
  readonly #totals = new IngestTotals()
  #inFlight = 0
  #index = 0
  /** Chunks that wait until the first one was taken: where that is refused, nothing may be written. */
  #held: LineChunk[] = []
  #begun: boolean
  #ended = false
  #refusal: Refusal | undefined
  #more: (() => void) | undefined

  constructor(stream: IngestStream) {
    this.#stream = stream
    this.#begun = stream.request.ifMatch === undefined && stream.request.idempotencyKey === undefined
  }

  push(bytes: Buffer, more: () => void): void {
    for (const chunk of this.#splitter.push(bytes)) this.#send(chunk)
    if (this.#splitter.waiting > this.#stream.lineBytesMax + limits.ingestChunkBytes) {
      this.#refusal ??= refuse('too_large', `Expected lines of at most ${this.#stream.lineBytesMax} bytes`)
    }
    // Chunks cut by arrival would be other chunks when the same upload is sent again.
    if (this.#inFlight === 0 && this.#stream.request.idempotencyKey === undefined) {
      const lines = this.#splitter.flushLines()
      if (lines !== undefined) this.#send(lines)
    }
    this.#more = more
    this.#goOn()
  }

  end(): void {
    this.#ended = true
    const rest = this.#splitter.end()
    if (rest !== undefined) this.#send(rest)
    this.#goOn()
  }

  fail(refusal: Refusal): void {
    this.#refusal ??= refusal
    this.#goOn()
  }

  #send(chunk: LineChunk): void {
    if (this.#refusal !== undefined) return
    if (!this.#begun && this.#index > 0) {
      this.#held.push(chunk)
      return
    }
    const { parts, faults } = commandsOf(this.#stream, { chunk, index: this.#index++ })
    for (const fault of faults) this.#totals.addFault(fault)
    if (parts.length === 0) this.#begun = true
    // Counted first: a shard whose queue is full answers at once.
    this.#inFlight += parts.length
    for (const { shard, command } of parts) {
      this.#stream.shards.sendTo(shard, command, (outcome) => this.#done(outcome))
    }
  }

  #done(outcome: Outcome): void {
    this.#inFlight--
    if (outcome.kind === 'ingested') this.#totals.add(outcome)
    else if (outcome.kind === 'refused') this.#refusal ??= outcome.refusal
    if (this.#inFlight === 0) this.#begin()
    this.#goOn()
  }

  /** The first chunk was answered, by every shard that it went to. */
  #begin(): void {
    this.#begun = true
    for (const chunk of this.#held.splice(0)) this.#send(chunk)
  }

  #goOn(): void {
    const { exchange } = this.#stream
    if (!exchange.open) return
    if (this.#inFlight === 0 && (this.#ended || this.#refusal !== undefined)) {
      this.#answer()
      return
    }
    const more = this.#more
    const enough = this.#inFlight >= limits.ingestChunksInFlightMax || this.#held.length > 0
    if (more === undefined || this.#refusal !== undefined || enough) return
    this.#more = undefined
    more()
  }

  #answer(): void {
    const { exchange } = this.#stream
    const refusal = this.#refusal
    if (refusal === undefined) {
      answerTotals(this.#stream, this.#totals)
      return
    }
    // What was written before stays written, so the answer says how far that was.
    const written = { accepted: this.#totals.accepted, rejected: this.#totals.rejected }
    refuseRest(exchange, { ...refusal, extra: { ...refusal.extra, ...written } })
  }
}

function answerTotals(stream: IngestStream, totals: IngestTotals): void {
  const headers = totals.replayed ? replayedHeaders : []
  stream.exchange.answer({ status: 200, body: JSON.stringify(summaryOf(stream, totals)), headers })
}

function summaryOf({ request }: IngestStream, totals: IngestTotals): IngestSummary | IngestManySummary {
  return request.agent === undefined ? totals.many() : totals.one(request.agent)
}

/** The commands of one chunk, each for one shard, and the lines that go to none. */
function commandsOf(
  stream: IngestStream,
  { chunk, index }: { chunk: LineChunk; index: number },
): { parts: ShardCommand[]; faults: IngestedOutcome['faults'] } {
  const { request, shards, principal } = stream
  const options = optionsOf(stream, index)
  const { bytes, firstLine } = chunk
  if (request.agent !== undefined) {
    const command: IngestCommand = withAccess(stream, {
      kind: 'ingestChunk' as const,
      agent: request.agent,
      chunk: bytes,
      firstLine,
      mode: 'skip' as const,
      options,
    })
    return { parts: [{ shard: shards.shardOf(request.agent), command }], faults: [] }
  }
  const { byShard, faults } = addressLines(chunk, { shardOf: (agent) => shards.shardOf(agent), principal })
  const parts = [...byShard].map(([shard, lines]) => ({
    shard,
    command: withAccess(stream, {
      kind: 'ingestChunk' as const,
      agent: '',
      chunk: Buffer.concat(lines.bytes),
      firstLine,
      lineNumbers: lines.numbers,
      mode: 'skip' as const,
      options,
    }),
  }))
  return { parts, faults }
}

/** Whether the lines may be written, and under their key: that one of If-Match is left to the write. */
function checkOf(command: IngestCommand): IngestCommand {
  const { idempotency } = command.options
  return { ...command, mode: 'check', options: idempotency === undefined ? {} : { idempotency } }
}

type IngestCommand = CommandOf<'ingestChunk'>

interface ShardCommand {
  shard: number
  command: IngestCommand
}

/**
 * If-Match holds for the first chunk. Each chunk has an idempotency key of its own, made of the stream's; the line
 * break keeps it apart from any that a client can send.
 */
function optionsOf({ request, principal }: IngestStream, index: number): WriteOptions {
  const options: WriteOptions = {}
  if (request.signing !== undefined) options.signing = request.signing
  if (request.ifMatch !== undefined && index === 0) options.ifMatch = request.ifMatch
  if (request.idempotencyKey !== undefined) {
    options.idempotency = { caller: principal.id, key: `${request.idempotencyKey}\n${index}` }
  }
  return options
}
