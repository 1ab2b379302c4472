import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { lineEnd, LineSplitter, type LineChunk } from '../../../base/line-splitter.js'
import { sentBy, type IngestedOutcome } from '../../../protocol/messages.js'
import { answerOf, unexpected } from '../../routes/answers.js'
import { withAccess } from '../../routes/parameters.js'
import type { Answer } from '../../routes/route.js'
import { tooLarge } from '../body.js'
import { readWhole, RecordedBody, type BodySource, type BrokenBody } from './array-body.js'
import {
  commandsOf,
  keepingCommand,
  optionsOf,
  readingOf,
  summaryOf,
  tooManyAgents,
  type IngestCommand,
  type IngestStream,
  type ShardCommand,
} from './commands.js'
import { answerTotals, graver } from './stream.js'
import { IngestTotals } from './summary.js'

/** A body that is read as a whole: a single record, or lines that are written all or none. */
export class WholeIngest {
  readonly #stream: IngestStream
  readonly #bytesMax: number

  constructor(stream: IngestStream) {
    this.#stream = stream
    const { request, lineBytesMax } = stream
    const isRead = request.format === 'json' && request.onError !== 'keep'
    this.#bytesMax = isRead ? lineBytesMax : limits.ingestAtomicBytesMax
  }

  /** Takes the body. @returns the answer; undefined when the client has gone */
  async run(body: BodySource): Promise<Answer | Refusal | undefined> {
    const { memory, request } = this.#stream
    const whole = await readWhole(body, { memory, bytesMax: this.#bytesMax })
    if (!('bytes' in whole)) return answerBroken(whole)
    return request.format === 'json' ? this.#one(whole.bytes) : this.#allOrNone(whole.bytes, body)
  }

  async #one(body: Buffer): Promise<Answer | Refusal> {
    const { request, shards, principal, lineBytesMax } = this.#stream
    const agent = request.agent ?? ''
    const options = optionsOf(this.#stream, 0)
    const { event } = request
    const how = {
      ...readingOf(this.#stream),
      ...(event !== undefined && { event }),
      // Too long to be read, but not to be kept.
      ...(body.length > lineBytesMax && { refusal: tooLarge(lineBytesMax) }),
      ...(request.onError === 'keep' && { keep: true as const }),
    }
    const command = withAccess(this.#stream, { kind: 'ingestOne' as const, agent, body, ...how, options })
    const outcome = await shards.ask(agent, sentBy(principal.id, command))
    if (outcome.kind === 'ingested') {
      const totals = new IngestTotals(this.#stream.onRefused)
      totals.add(outcome)
      return answerTotals(this.#stream, totals)
    }
    const answer = answerOf(outcome)
    if ('code' in answer && statusOf(answer) < 500) this.#stream.onRefused(answer.code, 1)
    return answer
  }

  /** Lines of several shards are checked by all of them first: no shard writes before all have agreed. */
  async #allOrNone(bytes: Buffer, body: BodySource): Promise<Answer | Refusal | undefined> {
    const once = this.#stream.request.once !== undefined
    const linesMax = once ? limits.ingestOnceLinesMax : limits.ingestAtomicLinesMax
    if (hasMoreLines(bytes, linesMax)) {
      const what = once ? 'once, all or none' : 'all or none'
      const detail = `Expected at most ${linesMax} lines that are written ${what}`
      return refuse('too_large', detail)
    }
    const addressed = await this.#addressed(bytes)
    if ('code' in addressed) return addressed
    const { parts, faults } = addressed
    const keyed = this.#stream.request.idempotencyKey !== undefined
    if (parts.length > 1 || faults.length > 0 || keyed) {
      // A refusal by the check is not kept, so the upload can be corrected and sent again under its key.
      const checks = parts.map(({ shard, command }) => ({ shard, command: checkOf(command) }))
      const checked = await this.#totalsOf(checks, faults)
      if ('code' in checked) return checked
      if (checked.rejected > 0) return this.#rejected(checked)
    }
    // The credential may have ended while the lines were checked.
    if (body.broken !== undefined) return answerBroken(body.broken)
    const writes = parts.map(({ shard, command }) => ({
      shard,
      command: { ...command, mode: 'reject' as const },
    }))
    const written = await this.#totalsOf(writes, [])
    if ('code' in written) return written
    return written.rejected > 0 ? this.#rejected(written) : answerTotals(this.#stream, written)
  }

  /** The command of each shard; lines that name their agents are searched slice by slice. */
  async #addressed(bytes: Buffer): Promise<Addressed | Refusal> {
    const whole = { bytes, firstLine: 1 }
    if (this.#stream.request.agent !== undefined) return commandsOf(this.#stream, { chunk: whole, index: 0 })
    const found: Addressed = { parts: [], faults: [] }
    const agents = new Set<string>()
    for (const chunk of chunksOf(bytes)) {
      const some = await this.#stream.slices.run(() => commandsOf(this.#stream, { chunk, index: 0 }))
      for (const agent of some.agents) agents.add(agent)
      if (agents.size > limits.ingestAtomicAgentsMax) return tooManyAgents
      found.parts.push(...some.parts)
      found.faults.push(...some.faults)
    }
    return { ...found, parts: joinedByShard(found.parts) }
  }

  /** The totals of the commands and of lines that went to no shard; or the refusal of a shard. */
  async #totalsOf(
    parts: readonly ShardCommand[],
    faults: IngestedOutcome['faults'],
  ): Promise<IngestTotals | Refusal> {
    const { shards, principal } = this.#stream
    const totals = new IngestTotals(this.#stream.onRefused)
    for (const fault of faults) totals.addFault(fault)
    const asked = parts.map(({ shard, command }) => shards.askOne(shard, sentBy(principal.id, command)))
    let refusal: Refusal | undefined
    for (const outcome of await Promise.all(asked)) {
      if (outcome.kind === 'ingested') totals.add(outcome)
      else refusal = graver(refusal, unexpected(outcome))
    }
    return refusal ?? totals
  }

  #rejected(totals: IngestTotals): Refusal {
    totals.nothingWritten()
    const detail = `Expected every line to be valid, got ${totals.rejected} that are not`
    return refuse('ingest_rejected', detail, { extra: { ...summaryOf(this.#stream, totals) } })
  }
}

/** Refuses a body; with on_error=keep it is kept whole, as one line. The rest of it has not been read. */
export async function refuseWhole(
  stream: IngestStream,
  body: BodySource,
  refusal: Refusal,
): Promise<Answer | Refusal | undefined> {
  if (!(body instanceof RecordedBody)) return refusal
  const whole = await body.whole()
  if (!('bytes' in whole)) return answerBroken(whole)
  // An empty body has nothing to keep.
  if (whole.bytes.length === 0) return refusal
  const { shards, slices, principal, onRefused } = stream
  const line = { ...whole, firstLine: 1 }
  const { shard, command } = await slices.run(() => keepingCommand(stream, line, { refusal, index: 0 }))
  const outcome = await shards.askOne(shard, sentBy(principal.id, command))
  if (outcome.kind !== 'ingested') return unexpected(outcome)
  const totals = new IngestTotals(onRefused)
  totals.add(outcome)
  return answerTotals(stream, totals)
}

/** The answer to a body that could not be read; undefined when the client has gone. */
export function answerBroken(broken: BrokenBody): Refusal | undefined {
  return 'refusal' in broken ? broken.refusal : undefined
}

interface Addressed {
  parts: ShardCommand[]
  faults: IngestedOutcome['faults']
}

/** Whether a body has more lines than `most`; the last one counts even without a line feed. */
function hasMoreLines(body: Buffer, most: number): boolean {
  let lines = body.at(-1) === LINE_FEED ? 0 : 1
  for (let at = lineEnd(body, 0); at < body.length && lines <= most; at = lineEnd(body, at + 1)) lines++
  return lines > most
}

/** The lines of a body, in slices. */
function* chunksOf(body: Buffer): Generator<LineChunk> {
  const splitter = new LineSplitter({ bytes: limits.ingestChunkBytes, lines: limits.ingestChunkLines })
  for (let at = 0; at < body.length; at += limits.ingestChunkBytes) {
    yield* splitter.push(body.subarray(at, at + limits.ingestChunkBytes))
  }
  const rest = splitter.end()
  if (rest !== undefined) yield rest
}

/** One command a shard: its lines are written all or none. */
function joinedByShard(parts: readonly ShardCommand[]): ShardCommand[] {
  const byShard = new Map<number, ShardCommand[]>()
  for (const part of parts) byShard.set(part.shard, [...(byShard.get(part.shard) ?? []), part])
  return [...byShard].flatMap(([shard, own]) => {
    const [first] = own
    if (first === undefined || own.length === 1) return own
    const chunk = Buffer.concat(own.map(({ command }) => command.chunk))
    const lineNumbers = own.flatMap(({ command }) => command.lineNumbers ?? [])
    return [{ shard, command: { ...first.command, firstLine: 1, chunk, lineNumbers } }]
  })
}

/** Checks whether the lines may be written, under their key too; If-Match is left to the write. */
function checkOf(command: IngestCommand): IngestCommand {
  const { idempotency } = command.options
  return { ...command, mode: 'check', options: idempotency === undefined ? {} : { idempotency } }
}
