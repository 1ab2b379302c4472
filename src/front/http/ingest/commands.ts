import type { BodyMemory } from '../../../base/gathered-bytes.js'
import { limits } from '../../../base/limits/limits.js'
import type { LineChunk } from '../../../base/line-splitter.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { CommandOf, IngestedOutcome } from '../../../protocol/messages.js'
import type { WriteOnce, WriteOptions } from '../../../protocol/command-options.js'
import { withAccess } from '../../routes/parameters.js'
import type { IngestRequest, Principal } from '../../routes/route.js'
import type { IngestManySummary, IngestSummary } from '../../../wire/ingest.js'
import type { Exchange } from '../exchange.js'
import type { FrontSlices } from '../front-turn.js'
import { addressLines, agentOf } from './lines.js'
import type { IngestTotals } from './summary.js'

/** One ingest request and the parts that it works with. */
export interface IngestStream {
  exchange: Exchange
  request: IngestRequest
  principal: Principal
  shards: Shards
  slices: FrontSlices
  /** Counts what of its body is in memory. */
  memory: BodyMemory
  lineBytesMax: number
  /** Refused lines after which the upload is ended; 0 for any number. */
  badLinesMax: number
  /** Called with the number of lines refused with a code. */
  onRefused(code: string, count: number): void
}

/** Lines for one shard. */
export type IngestCommand = CommandOf<'ingestChunk'>

/** A command and its shard. */
export interface ShardCommand {
  shard: number
  command: IngestCommand
}

/** The commands of one chunk, each for one shard, and the lines that go to no shard. */
export function commandsOf(
  stream: IngestStream,
  { chunk, index }: { chunk: LineChunk; index: number },
): { parts: ShardCommand[]; faults: IngestedOutcome['faults']; agents: ReadonlySet<string> } {
  const { request, shards, principal } = stream
  const options = optionsOf(stream, index)
  const mode = request.onError === 'keep' ? ('keep' as const) : ('skip' as const)
  const { bytes, firstLine } = chunk
  const shared = { kind: 'ingestChunk' as const, firstLine, mode, ...readingOf(stream), options }
  if (request.agent !== undefined) {
    const command = withAccess(stream, { ...shared, agent: request.agent, chunk: bytes })
    return { parts: [{ shard: shards.shardOf(request.agent), command }], faults: [], agents: noAgents }
  }
  const where = { shardOf: (agent: string) => shards.shardOf(agent), principal, keeps: mode === 'keep' }
  const { byShard, faults, refused, agents } = addressLines(chunk, where)
  const parts = [...byShard].map(([shard, lines]) => ({
    shard,
    command: withAccess(stream, { ...shared, agent: '', chunk: lines.bytes, lineNumbers: lines.numbers }),
  }))
  const { rejectedAgent: agent } = request
  if (refused === undefined || agent === undefined) return { parts, faults, agents }
  const command = withAccess(stream, {
    ...shared,
    agent,
    chunk: refused.bytes,
    lineNumbers: refused.numbers,
    refusals: faults.map(({ refusal }) => refusal),
    options: rejectedOptions(options),
  })
  return { parts: [...parts, { shard: shards.shardOf(agent), command }], faults: [], agents }
}

/**
 * The command that keeps a text whole which the front thread refuses (on_error=keep), as one line: with the agent that it
 * names, if it names one where a line may.
 */
export function keepingCommand(
  stream: IngestStream,
  { bytes, firstLine }: LineChunk,
  { refusal, index }: { refusal: Refusal; index: number },
): ShardCommand {
  const { request, shards, principal, lineBytesMax } = stream
  const named = request.agent ?? agentOf(bytes.subarray(0, lineBytesMax), principal)
  const agent = typeof named === 'string' ? named : (request.rejectedAgent ?? '')
  const command = withAccess(stream, {
    kind: 'ingestChunk' as const,
    agent,
    chunk: bytes,
    firstLine,
    refusals: [refusal],
    mode: 'keep' as const,
    ...readingOf(stream),
    options: optionsOf(stream, index),
  })
  return { shard: shards.shardOf(agent), command }
}

/** How the text of records is read, and by which key each is written once. */
export function readingOf({
  request: { integers, once },
  principal,
}: Pick<IngestStream, 'request' | 'principal'>): { integers?: 'text'; once?: WriteOnce } {
  return {
    ...(integers !== undefined && { integers }),
    ...(once !== undefined && { once: { by: once, caller: principal.id } }),
  }
}

/** The same agent may have lines of its own in the same chunk, so kept lines have another key. */
function rejectedOptions({ idempotency, ...others }: WriteOptions): WriteOptions {
  if (idempotency === undefined) return others
  return { ...others, idempotency: { ...idempotency, key: `${idempotency.key}\nrejected` } }
}

const noAgents: ReadonlySet<string> = new Set()

/**
 * If-Match holds for the first chunk. Each chunk has an Idempotency-Key of its own, made of the upload's; with its line
 * feed it differs from any that a client can send.
 */
export function optionsOf({ request, principal }: IngestStream, index: number): WriteOptions {
  const options: WriteOptions = {}
  if (request.signing !== undefined) options.signing = request.signing
  if (request.ifMatch !== undefined && index === 0) options.ifMatch = request.ifMatch
  if (request.idempotencyKey !== undefined) {
    options.idempotency = { caller: principal.id, key: `${request.idempotencyKey}\n${index}` }
  }
  return options
}

/** The summary of an ingest, into one agent or many. */
export function summaryOf(
  { request }: IngestStream,
  totals: IngestTotals,
): IngestSummary | IngestManySummary {
  return request.agent === undefined ? totals.many() : totals.one(request.agent)
}

/** 413 for more agents than can be written all or none. */
export const tooManyAgents: Refusal = refuse(
  'too_large',
  `Expected at most ${limits.ingestAtomicAgentsMax} agents in lines that are written all or none`,
)
