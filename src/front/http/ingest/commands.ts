import { limits } from '../../../base/limits/limits.js'
import type { LineChunk } from '../../../base/line-splitter.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { CommandOf, IngestedOutcome } from '../../../protocol/messages.js'
import type { WriteOnce, WriteOptions } from '../../../protocol/command-options.js'
import { agentRefusal, withAccess } from '../../routes/parameters.js'
import type { IngestRequest, Principal } from '../../routes/route.js'
import type { IngestManySummary, IngestSummary } from '../../../wire/ingest.js'
import type { Upload } from '../../limits/uploads.js'
import type { Exchange } from '../exchange.js'
import type { FrontSlices } from '../front-turn.js'
import { addressLines, agentOf } from './lines.js'
import type { IngestTotals } from './summary.js'

/** One ingest request and the parts that it needs. */
export interface IngestStream {
  exchange: Exchange
  request: IngestRequest
  principal: Principal
  shards: Shards
  slices: FrontSlices
  /** Counts the bytes of its body that are in memory. */
  memory: Upload
  /** The most bytes of the body, by its head. */
  bodyBytesMax: number
  lineBytesMax: number
  /** Refused lines after which the upload is ended; 0 for no limit. */
  badLinesMax: number
  onRefused(code: string, count: number): void
}

/** Lines for one shard. */
export type IngestCommand = CommandOf<'ingestChunk'>

export interface ShardCommand {
  shard: number
  command: IngestCommand
}

/** The commands of one chunk, one per shard, and the lines that go to no shard. */
export function commandsOf(
  stream: IngestStream,
  { chunk, index }: { chunk: LineChunk; index: number },
): { parts: ShardCommand[]; faults: IngestedOutcome['faults']; agents: ReadonlySet<string> } {
  const { request, shards, principal } = stream
  const options = optionsOf(stream, index)
  const mode = request.onError === 'keep' ? ('keep' as const) : ('skip' as const)
  const { bytes, firstLine } = chunk
  const shared = { kind: 'ingestChunk' as const, firstLine, mode, ...readingOf(stream), options }
  const { otlp, agent: ofAll = otlp?.agent } = request
  if (ofAll !== undefined) {
    const addressed = otlp && { addressed: true as const }
    const command = withAccess(stream, { ...shared, ...addressed, agent: ofAll, chunk: bytes })
    return { parts: [{ shard: shards.shardOf(ofAll), command }], faults: [], agents: noAgents }
  }
  const addressing = { shardOf: (agent: string) => shards.shardOf(agent), principal, keeps: mode === 'keep' }
  const { byShard, faults, refused, agents } = addressLines(chunk, addressing)
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
 * A command that stores a text which the front thread refuses (on_error=keep), whole and as one line: for the
 * agent that is known, or that it names, if a line may name one.
 */
export function keepingCommand(
  stream: IngestStream,
  { bytes, firstLine }: LineChunk,
  { refusal, index, agent: found = '' }: { refusal: Refusal; index: number; agent?: string },
): ShardCommand {
  const { request, shards, principal, lineBytesMax } = stream
  const { otlp, rejectedAgent = '' } = request
  // A member `agent` of an OTLP message names no agent.
  const known = found === '' && otlp !== undefined ? rejectedAgent : found
  const named =
    request.agent ??
    (known === ''
      ? agentOf(bytes.subarray(0, lineBytesMax), principal)
      : (agentRefusal({ principal }, known) ?? known))
  const agent = typeof named === 'string' ? named : rejectedAgent
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

/** How record texts are parsed, and the key by which each record is written only once. */
export function readingOf({
  request: { integers, once },
  principal,
}: Pick<IngestStream, 'request' | 'principal'>): { integers?: 'text'; once?: WriteOnce } {
  return {
    ...(integers !== undefined && { integers }),
    ...(once !== undefined && { once: { by: once, caller: principal.id } }),
  }
}

/** The same agent can have other lines in the same chunk, so stored refused lines get another key. */
function rejectedOptions({ idempotency, ...others }: WriteOptions): WriteOptions {
  if (idempotency === undefined) return others
  return { ...others, idempotency: { ...idempotency, key: `${idempotency.key}\nrejected` } }
}

const noAgents: ReadonlySet<string> = new Set()

/**
 * If-Match applies to the first chunk. Each chunk has its own Idempotency-Key, derived from the upload's; its
 * line feed makes it different from any key that a client can send.
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

export function summaryOf(
  { request }: IngestStream,
  totals: IngestTotals,
): IngestSummary | IngestManySummary {
  return request.agent === undefined ? totals.many() : totals.one(request.agent)
}

/** 413 for more agents than an atomic upload may have. */
export const tooManyAgents: Refusal = refuse(
  'too_large',
  `Expected at most ${limits.ingestAtomicAgentsMax} agents in an atomic upload`,
)
