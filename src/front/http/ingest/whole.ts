import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import { lineEnd, LineSplitter, type LineChunk } from '../../../base/line-splitter.js'
import { sentBy } from '../../../protocol/messages.js'
import type { IngestedOutcome } from '../../../protocol/record-messages.js'
import { answerOf, unexpected } from '../../routes/answers.js'
import { withAccess } from '../../routes/parameters.js'
import type { Answer } from '../../routes/route.js'
import { tooLarge } from '../body.js'
import { readWhole, RecordedBody, reservedBody, type BodySource, type BrokenBody } from './array-body.js'
import {
  commandsOf,
  keepingCommand,
  optionsOf,
  readingOf,
  type IngestCommand,
  type ShardCommand,
} from './commands.js'
import { summaryOf, type IngestStream, type SourceContent } from './source.js'
import { moreSevere } from './stream.js'
import { IngestTotals } from './summary.js'

/**
 * Reads and ingests lines that are written all or none. Lines for several shards are checked by all of them
 * first; no shard writes before all have agreed.
 * @returns the answer; undefined if the client has disconnected
 */
export async function ingestAllOrNone(
  stream: IngestStream,
  body: BodySource,
): Promise<Answer | Refusal | undefined> {
  const whole = await readReserved(body, stream, limits.ingestAtomicBytesMax)
  if (!('bytes' in whole)) return answerBroken(whole)
  const once = stream.options.once !== undefined
  const linesMax = once ? limits.ingestDedupeLinesMax : limits.ingestAtomicLinesMax
  if (hasMoreLines(whole.bytes, linesMax)) {
    const kind = once ? 'atomic upload with deduplication' : 'atomic upload'
    return refuse('too_large', `Expected at most ${linesMax} lines in an ${kind}`)
  }
  const addressedLines = await addressedCommands(stream, whole.bytes)
  if ('code' in addressedLines) return addressedLines
  const { parts, faults } = addressedLines
  const keyed = stream.options.idempotency !== undefined
  if (parts.length > 1 || faults.length > 0 || keyed) {
    // A refusal by the check is not stored, so the upload can be corrected and sent again with its key.
    const checks = parts.map(({ shard, command }) => ({ shard, command: checkOf(command) }))
    const checked = await totalsOf(stream, checks, faults)
    if ('code' in checked) return checked
    if (checked.rejected > 0) return rejectedAll(stream, checked)
  }
  // The credential may have become invalid while the lines were checked.
  if (body.interruption !== undefined) return answerBroken(body.interruption)
  const writes = parts.map(({ shard, command }) => ({
    shard,
    command: { ...command, mode: 'reject' as const },
  }))
  const written = await totalsOf(stream, writes, [])
  if ('code' in written) return written
  return written.rejected > 0 ? rejectedAll(stream, written) : stream.source.answer(written, stream)
}

/** The command for each shard. Lines that name their agents are searched slice by slice. */
async function addressedCommands(stream: IngestStream, bytes: Buffer): Promise<AddressedCommands | Refusal> {
  const whole = { bytes, firstLine: 1 }
  if (stream.target.agent !== undefined) return commandsOf(stream, { chunk: whole, index: 0 })
  const found: AddressedCommands = { parts: [], faults: [] }
  const agents = new Set<string>()
  for (const chunk of chunksOf(bytes)) {
    const commands = await stream.slices.run(() => commandsOf(stream, { chunk, index: 0 }))
    for (const agent of commands.agents) agents.add(agent)
    if (agents.size > limits.ingestAtomicAgentsMax) {
      const detail = `Expected at most ${limits.ingestAtomicAgentsMax} agents in an atomic upload`
      return refuse('too_large', detail)
    }
    found.parts.push(...commands.parts)
    found.faults.push(...commands.faults)
  }
  return { ...found, parts: mergedByShard(found.parts) }
}

/**
 * Sends commands and returns their totals, including lines that were sent to no shard; or the refusal of a
 * shard.
 */
async function totalsOf(
  stream: IngestStream,
  parts: readonly ShardCommand[],
  faults: IngestedOutcome['faults'],
): Promise<IngestTotals | Refusal> {
  const { shards, principal } = stream
  const totals = new IngestTotals(stream.onRefused)
  for (const fault of faults) totals.addFault(fault)
  const outcomes = parts.map(({ shard, command }) =>
    shards.requestShard(shard, sentBy(principal.id, command)),
  )
  let refusal: Refusal | undefined
  for (const outcome of await Promise.all(outcomes)) {
    if (outcome.kind === 'ingested') totals.add(outcome)
    else refusal = moreSevere(refusal, unexpected(outcome))
  }
  return refusal ?? totals
}

function rejectedAll(stream: IngestStream, totals: IngestTotals): Refusal {
  totals.resetAccepted()
  const count = totals.rejected === 1 ? '1 invalid line' : `${totals.rejected} invalid lines`
  const detail = `Nothing was written because of ${count}`
  return refuse('ingest_rejected', detail, { extra: { ...summaryOf(totals, stream.target) } })
}

/** Reads and ingests a body that is one record. @returns the answer; undefined if the client has disconnected */
export async function ingestRecord(
  stream: IngestStream,
  { record, event }: Extract<SourceContent, { record: BodySource }>,
): Promise<Answer | Refusal | undefined> {
  const { target, options, shards, principal, lineBytesMax, onRefused } = stream
  const { agent = '' } = target
  const keeps = options.onError === 'keep'
  const whole = await readReserved(record, stream, keeps ? limits.ingestAtomicBytesMax : lineBytesMax)
  if (!('bytes' in whole)) return answerBroken(whole)
  const reading = {
    ...readingOf(stream),
    ...(event !== undefined && { event }),
    // Too long to be parsed, but not to be stored with on_error=keep.
    ...(whole.bytes.length > lineBytesMax && { refusal: tooLarge(lineBytesMax) }),
    ...(keeps && { keep: true as const }),
  }
  const sent = {
    kind: 'ingestOne' as const,
    agent,
    body: whole.bytes,
    ...reading,
    options: optionsOf(stream, 0),
  }
  const outcome = await shards.request(agent, sentBy(principal.id, withAccess(stream, sent)))
  if (outcome.kind === 'ingested') return answerOutcome(stream, outcome)
  const answer = answerOf(outcome)
  if ('code' in answer && statusOf(answer) < 500) onRefused(answer.code, 1)
  return answer
}

/** Refuses a body; with on_error=keep it is stored whole, as one line. Reads the rest of it first. */
export async function refuseWhole(
  stream: IngestStream,
  { malformed: refusal, body, agent }: Extract<SourceContent, { malformed: Refusal }>,
): Promise<Answer | Refusal | undefined> {
  if (!(body instanceof RecordedBody)) return refusal
  const whole = await body.whole()
  if (!('bytes' in whole)) return answerBroken(whole)
  // An empty body has nothing to store.
  if (whole.bytes.length === 0) return refusal
  const { shards, slices, principal } = stream
  const line = { ...whole, firstLine: 1 }
  const keeping = { refusal, index: 0, ...(agent !== undefined && { agent }) }
  const { shard, command } = await slices.run(() => keepingCommand(stream, line, keeping))
  const outcome = await shards.requestShard(shard, sentBy(principal.id, command))
  return outcome.kind === 'ingested' ? answerOutcome(stream, outcome) : unexpected(outcome)
}

function answerOutcome(stream: IngestStream, outcome: IngestedOutcome): Answer | Refusal {
  const totals = new IngestTotals(stream.onRefused)
  totals.add(outcome)
  return stream.source.answer(totals, stream)
}

/** Reads a whole body, for all of which memory is reserved. @returns 413 for more than `bytesMax` */
function readReserved(
  body: BodySource,
  { memory, bodyBytesMax }: IngestStream,
  bytesMax: number,
): Promise<{ bytes: Buffer } | BrokenBody> {
  const reserved = reservedBody(body, { memory, bytes: Math.min(bodyBytesMax, bytesMax) })
  return readWhole(reserved, { memory, bodyBytesMax, bytesMax })
}

/** The answer to a body that could not be read; undefined if the client has disconnected. */
export function answerBroken(broken: BrokenBody): Refusal | undefined {
  return 'refusal' in broken ? broken.refusal : undefined
}

type AddressedCommands = Omit<ReturnType<typeof commandsOf>, 'agents'>

/** Whether a body has more than `linesMax` lines; the last one counts even without a line feed. */
function hasMoreLines(body: Buffer, linesMax: number): boolean {
  let lines = body.at(-1) === LINE_FEED ? 0 : 1
  for (let at = lineEnd(body, 0); at < body.length && lines <= linesMax; at = lineEnd(body, at + 1)) lines++
  return lines > linesMax
}

function* chunksOf(body: Buffer): Generator<LineChunk> {
  const splitter = new LineSplitter({ bytes: limits.ingestChunkBytes, lines: limits.ingestChunkLines })
  for (let at = 0; at < body.length; at += limits.ingestChunkBytes) {
    yield* splitter.push(body.subarray(at, at + limits.ingestChunkBytes))
  }
  const rest = splitter.end()
  if (rest !== undefined) yield rest
}

/** Merges the commands for each shard into one, whose lines are written all or none. */
function mergedByShard(parts: readonly ShardCommand[]): ShardCommand[] {
  const byShard = new Map<number, ShardCommand[]>()
  for (const part of parts) byShard.set(part.shard, [...(byShard.get(part.shard) ?? []), part])
  return [...byShard].flatMap(([shard, ofShard]) => {
    const [first] = ofShard
    if (first === undefined || ofShard.length === 1) return ofShard
    const chunk = Buffer.concat(ofShard.map(({ command }) => command.chunk))
    const lineNumbers = ofShard.flatMap(({ command }) => command.lineNumbers ?? [])
    return [{ shard, command: { ...first.command, firstLine: 1, chunk, lineNumbers } }]
  })
}

/**
 * A command that checks whether the lines can be written, including their key. If-Match is checked by the
 * write itself.
 */
function checkOf(command: IngestCommand): IngestCommand {
  const { idempotency } = command.options
  return { ...command, mode: 'check', options: idempotency === undefined ? {} : { idempotency } }
}
