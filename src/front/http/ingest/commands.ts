import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { lineEnd, type LineChunk } from '../../../base/line-splitter.js'
import type { WriteOptions } from '../../../protocol/command-options.js'
import type { CommandOf } from '../../../protocol/messages.js'
import type { IngestedOutcome, LineFault } from '../../../protocol/record-messages.js'
import { isUtf16, utf16Given } from '../../../strand/json.js'
import { isBlank, memberText } from '../../../strand/json-scanner.js'
import { agentParameter, agentRefusal, withAccess } from '../../routes/parameters.js'
import type { IngestOptions, Principal } from '../../routes/route.js'
import type { IngestStream } from './source.js'

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
  const { target, shards } = stream
  const { bytes } = chunk
  const shared = sharedOf(stream, chunk, index)
  const { agent: ofAll, rejectedAgent: agent } = target
  if (ofAll !== undefined) {
    const addressed = target.addressed && { addressed: target.addressed }
    const command = withAccess(stream, { ...shared, ...addressed, agent: ofAll, chunk: bytes })
    return { parts: [{ shard: shards.shardOf(ofAll), command }], faults: [], agents: new Set() }
  }
  const { byShard, faults, refused, agents } = addressLines(chunk, stream)
  const found = ({ edges, numbers }: FoundLines) => ({
    chunk: concatRuns(bytes, edges),
    lineNumbers: numbers,
  })
  const parts = [...byShard].map(([shard, lines]) => ({
    shard,
    command: withAccess(stream, { ...shared, agent: '', ...found(lines) }),
  }))
  if (shared.mode !== 'keep' || faults.length === 0 || agent === undefined) return { parts, faults, agents }
  const command = withAccess(stream, {
    ...shared,
    agent,
    ...found(refused),
    refusals: faults.map(({ refusal }) => refusal),
    options: rejectedOptions(shared.options),
  })
  return { parts: [...parts, { shard: shards.shardOf(agent), command }], faults: [], agents }
}

/**
 * A command that stores a text which the front thread refuses (on_error=keep), whole and as one line: for the
 * agent that is known, or that it names.
 */
export function keepingCommand(
  stream: IngestStream,
  chunk: LineChunk,
  { refusal, index, agent: found = '' }: { refusal: Refusal; index: number; agent?: string },
): ShardCommand {
  const { target, shards, principal, lineBytesMax } = stream
  const { agent: ofAll, rejectedAgent = '' } = target
  const named =
    found === ''
      ? (ofAll ?? agentOf(chunk.bytes.subarray(0, lineBytesMax), principal))
      : (agentRefusal({ principal }, found) ?? found)
  const agent = typeof named === 'string' ? named : rejectedAgent
  const shared = sharedOf(stream, chunk, index)
  const command = withAccess(stream, { ...shared, agent, chunk: chunk.bytes, refusals: [refusal] })
  return { shard: shards.shardOf(agent), command }
}

/** What the commands of a chunk have in common. */
function sharedOf(stream: IngestStream, { firstLine }: LineChunk, index: number) {
  const mode = stream.options.onError === 'keep' ? ('keep' as const) : ('skip' as const)
  const options = optionsOf(stream, index)
  return { kind: 'ingestChunk' as const, firstLine, mode, ...readingOf(stream), options }
}

/** How record texts are parsed, and the key by which each record is written only once. */
export function readingOf({ options }: IngestStream): Pick<IngestOptions, 'integers' | 'once'> {
  const { integers, once } = options
  return { ...(integers !== undefined && { integers }), ...(once !== undefined && { once }) }
}

/** The same agent can have other lines in the same chunk, so stored refused lines get another key. */
function rejectedOptions({ idempotency, ...others }: WriteOptions): WriteOptions {
  if (idempotency === undefined) return others
  return { ...others, idempotency: { ...idempotency, key: `${idempotency.key}\nrejected` } }
}

/**
 * If-Match applies to the first chunk. Each chunk has its own Idempotency-Key, derived from the upload's; its
 * line feed makes it different from any key that a client can send.
 */
export function optionsOf({ options }: IngestStream, index: number): WriteOptions {
  const { signing, ifMatch, idempotency } = options
  return {
    ...(signing !== undefined && { signing }),
    ...(ifMatch !== undefined && index === 0 && { ifMatch }),
    ...(idempotency !== undefined && {
      idempotency: { ...idempotency, key: `${idempotency.key}\n${index}` },
    }),
  }
}

/** Lines within a chunk: alternating start and end offsets of runs of lines, and their line numbers. */
interface FoundLines {
  edges: number[]
  numbers: number[]
}

/**
 * Partitions the lines `{agent, data, type?}` of a chunk by the shard of their agents, apart from those that
 * are refused. Only searches each line for its agent, without parsing it; the shard parses it strictly.
 */
export function addressLines(
  { bytes, firstLine }: LineChunk,
  { shards, principal }: Pick<IngestStream, 'shards' | 'principal'>,
): { byShard: Map<number, FoundLines>; refused: FoundLines; faults: LineFault[]; agents: Set<string> } {
  const byShard = new Map<number, FoundLines>()
  const refused: FoundLines = { edges: [], numbers: [] }
  const agents = new Set<string>()
  const faults: LineFault[] = []
  let line = firstLine
  for (let from = 0; from < bytes.length; line++) {
    const start = from
    const to = lineEnd(bytes, from)
    from = to + 1
    if (isBlank(bytes, start, to)) continue
    const agent = agentOf(bytes.subarray(start, to), principal)
    if (typeof agent !== 'string') {
      faults.push({ line, agent: '', refusal: agent })
      addLine(refused, { start, end: from, line })
      continue
    }
    agents.add(agent)
    const shard = shards.shardOf(agent)
    const lines = byShard.get(shard) ?? { edges: [], numbers: [] }
    byShard.set(shard, lines)
    addLine(lines, { start, end: from, line })
  }
  return { byShard, refused, faults, agents }
}

function addLine(
  { edges, numbers }: FoundLines,
  { start, end, line }: { start: number; end: number; line: number },
): void {
  if (edges.at(-1) === start) edges[edges.length - 1] = end
  else edges.push(start, end)
  numbers.push(line)
}

/** Concatenates runs of lines; adds a line feed to the last line of a stream if it has none. */
function concatRuns(bytes: Buffer, edges: readonly number[]): Buffer {
  let length = 0
  for (let at = 0; at < edges.length; at += 2) length += (edges[at + 1] ?? 0) - (edges[at] ?? 0)
  const all = Buffer.allocUnsafeSlow(length)
  let to = 0
  for (let at = 0; at < edges.length; at += 2) to += bytes.copy(all, to, edges[at], edges[at + 1])
  if (to < length) all[to] = LINE_FEED
  return all
}

const notAnObject = refuse('validation_failed', 'Expected a JSON object {agent, data, type?}')

/**
 * The agent of a line, or why it cannot be written to. Does not check the rest of the line: an exception for
 * each of a million lines that are not JSON would take seconds, and so would parsing lines that the shard
 * parses again.
 */
function agentOf(line: Buffer, principal: Principal): string | Refusal {
  const named = memberText(line, 'agent')
  if (named === undefined) return isUtf16(line) ? utf16Given : notAnObject
  const agent = agentParameter(named)
  if (typeof agent !== 'string') return refuse('validation_failed', agent.detail)
  return agentRefusal({ principal }, agent) ?? agent
}
