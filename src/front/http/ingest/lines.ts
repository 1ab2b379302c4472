import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { LineFault } from '../../../protocol/messages.js'
import { lineEnd, type LineChunk } from '../../../base/line-splitter.js'
import { isUtf16, utf16Given } from '../../../strand/json.js'
import { isBlank, memberText } from '../../../strand/json-scanner.js'
import { agentParameter, agentRefusal } from '../../routes/parameters.js'
import type { Principal } from '../../routes/route.js'

/** Lines for one shard: their bytes including line feeds, and their line numbers. */
export interface ShardLines {
  bytes: Buffer
  numbers: number[]
}

/** Lines for one shard within a chunk: alternating start and end offsets of runs of lines. */
interface FoundLines {
  edges: number[]
  numbers: number[]
}

/** The lines of a chunk, partitioned by shard. */
export interface AddressedLines {
  byShard: Map<number, ShardLines>
  faults: LineFault[]
  /** The refused lines, if they are stored (on_error=keep). */
  refused: ShardLines | undefined
  agents: Set<string>
}

/**
 * Partitions the lines `{agent, data, type?}` of a chunk by the shard of their agents. Only searches each
 * line for its agent, without parsing it; the shard parses it strictly.
 */
export function addressLines(
  chunk: LineChunk,
  {
    shardOf,
    principal,
    keeps,
  }: { shardOf: (agent: string) => number; principal: Principal; keeps?: boolean },
): AddressedLines {
  const { bytes } = chunk
  const found = new Map<number, FoundLines>()
  const agents = new Set<string>()
  const faults: LineFault[] = []
  const refusedLines = new Map<number, FoundLines>()
  let line = chunk.firstLine
  for (let from = 0; from < bytes.length; line++) {
    const start = from
    const to = lineEnd(bytes, from)
    from = to + 1
    if (isBlank(bytes, start, to)) continue
    const agent = agentOf(bytes.subarray(start, to), principal)
    if (typeof agent !== 'string') {
      faults.push({ line, agent: '', refusal: agent })
      if (keeps === true) addLine(refusedLines, 0, { start, end: from, line })
      continue
    }
    agents.add(agent)
    addLine(found, shardOf(agent), { start, end: from, line })
  }
  const byShard = new Map<number, ShardLines>()
  for (const [shard, lines] of found) {
    byShard.set(shard, toShardLines(bytes, lines))
  }
  const refused = refusedLines.get(0)
  return { byShard, faults, refused: refused && toShardLines(bytes, refused), agents }
}

function toShardLines(bytes: Buffer, { edges, numbers }: FoundLines): ShardLines {
  return { bytes: concatRuns(bytes, edges), numbers }
}

function addLine(
  found: Map<number, FoundLines>,
  shard: number,
  { start, end, line }: { start: number; end: number; line: number },
): void {
  let lines = found.get(shard)
  if (lines === undefined) {
    lines = { edges: [], numbers: [] }
    found.set(shard, lines)
  }
  const { edges } = lines
  if (edges.at(-1) === start) edges[edges.length - 1] = end
  else edges.push(start, end)
  lines.numbers.push(line)
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
export function agentOf(line: Buffer, principal: Principal): string | Refusal {
  const named = memberText(line, 'agent')
  if (named === undefined) return isUtf16(line) ? utf16Given : notAnObject
  const agent = agentParameter(named)
  if (typeof agent !== 'string') return refuse('validation_failed', agent.detail)
  return agentRefusal({ principal }, agent) ?? agent
}
