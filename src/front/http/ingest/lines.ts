import { LINE_FEED } from '../../../base/ascii.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { LineFault } from '../../../protocol/messages.js'
import { lineEnd, type LineChunk } from '../../../base/line-splitter.js'
import { isUtf16, utf16Given } from '../../../strand/json.js'
import { isBlank, memberText } from '../../../strand/json-scanner.js'
import { agentParameter, agentRefusal } from '../../routes/parameters.js'
import type { Principal } from '../../routes/route.js'

/** Lines of one shard: their bytes, each with its line feed, and their numbers. */
export interface ShardLines {
  bytes: Buffer
  numbers: number[]
}

/** Lines of one shard within their chunk: where runs of them begin and end, in turn. */
interface FoundLines {
  edges: number[]
  numbers: number[]
}

/** A chunk whose lines are divided among the shards. */
export interface AddressedLines {
  byShard: Map<number, ShardLines>
  faults: LineFault[]
  /** The faulty lines, where refused lines are kept. */
  refused: ShardLines | undefined
  /** The agents that were named, without those of faulty lines. */
  agents: Set<string>
}

/**
 * Sends each line `{agent, data, type?}` of a chunk to the shard of its agent. Only the agent is searched for here,
 * without parsing the line; the shard reads the line by the strict rules.
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
  const bad = new Map<number, FoundLines>()
  let line = chunk.firstLine
  for (let from = 0; from < bytes.length; line++) {
    const start = from
    const to = lineEnd(bytes, from)
    from = to + 1
    if (isBlank(bytes, start, to)) continue
    const agent = agentOf(bytes.subarray(start, to), principal)
    if (typeof agent !== 'string') {
      faults.push({ line, agent: '', refusal: agent })
      if (keeps === true) addLine(bad, 0, { start, end: from, line })
      continue
    }
    agents.add(agent)
    addLine(found, shardOf(agent), { start, end: from, line })
  }
  const byShard = new Map<number, ShardLines>()
  for (const [shard, lines] of found) {
    byShard.set(shard, linesOf(bytes, lines))
  }
  const refused = bad.get(0)
  return { byShard, faults, refused: refused && linesOf(bytes, refused), agents }
}

function linesOf(bytes: Buffer, { edges, numbers }: FoundLines): ShardLines {
  return { bytes: joined(bytes, edges), numbers }
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

/** The runs of lines in one piece; the last line of a stream gets a line feed if it lacks one. */
function joined(bytes: Buffer, edges: readonly number[]): Buffer {
  let length = 0
  for (let at = 0; at < edges.length; at += 2) length += (edges[at + 1] ?? 0) - (edges[at] ?? 0)
  const all = Buffer.allocUnsafeSlow(length)
  let to = 0
  for (let at = 0; at < edges.length; at += 2) to += bytes.copy(all, to, edges[at], edges[at + 1])
  if (to < length) all[to] = LINE_FEED
  return all
}

const noObject = refuse('validation_failed', 'Expected a JSON object {agent, data, type?}')

/**
 * The agent that a line names, or why it cannot be written to. The rest of the line is not checked: an exception for each of
 * a million lines that are not JSON would take seconds, and so would parsing lines that the shard parses again.
 */
export function agentOf(line: Buffer, principal: Principal): string | Refusal {
  const named = memberText(line, 'agent')
  if (named === undefined) return isUtf16(line) ? utf16Given : noObject
  const agent = agentParameter(named)
  if (typeof agent !== 'string') return refuse('validation_failed', agent.detail)
  return agentRefusal({ principal }, agent) ?? agent
}
