import { refuse, type Refusal } from '../base/errors.js'
import type { LineFault } from '../protocol/messages.js'
import { agentParameter, agentRefusal } from '../routes/parameters.js'
import type { Principal } from '../routes/route.js'
import { LINE_FEED, nextLineFeed, type LineChunk } from './ingest-splitter.js'

/** Lines of one shard: their bytes, each with its line feed, and their numbers. */
export interface ShardLines {
  bytes: Buffer
  numbers: number[]
}

/** Lines of one shard as they lie in their chunk: where runs of them begin and end, in turn. */
interface FoundLines {
  edges: number[]
  numbers: number[]
}

/** A chunk of lines that are shared out among the shards. */
export interface AddressedLines {
  byShard: Map<number, ShardLines>
  faults: LineFault[]
  /** The agents that were named, those of lines at fault not among them. */
  agents: Set<string>
}

/**
 * Sends each line `{agent, data, type?}` of a chunk to the shard of its agent. Only the agent is looked for here, without
 * parsing the line; the shard reads it by the strict rules.
 */
export function addressLines(
  chunk: LineChunk,
  { shardOf, principal }: { shardOf: (agent: string) => number; principal: Principal },
): AddressedLines {
  const { bytes } = chunk
  const found = new Map<number, FoundLines>()
  const agents = new Set<string>()
  const faults: LineFault[] = []
  let line = chunk.firstLine
  for (let from = 0; from < bytes.length; line++) {
    const lineFeed = nextLineFeed(bytes, from)
    const to = lineFeed === -1 ? bytes.length : lineFeed
    const start = from
    from = to + 1
    if (isBlank(bytes, start, to)) continue
    const agent = agentOf(bytes.subarray(start, to), principal)
    if (typeof agent !== 'string') {
      faults.push({ line, agent: '', refusal: agent })
      continue
    }
    agents.add(agent)
    addLine(found, shardOf(agent), { start, end: from, line })
  }
  const byShard = new Map<number, ShardLines>()
  for (const [shard, lines] of found) {
    byShard.set(shard, { bytes: joined(bytes, lines.edges), numbers: lines.numbers })
  }
  return { byShard, faults, agents }
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

/** The runs of lines one behind the other; the last line of a stream gets the line feed that it may lack. */
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

function agentOf(line: Buffer, principal: Principal): string | Refusal {
  const named = agentMember(line)
  if (named === undefined) return noObject
  const agent = agentParameter(named)
  if (typeof agent !== 'string') return refuse('validation_failed', agent.detail)
  return agentRefusal({ principal }, agent) ?? agent
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET_OPEN = 0x5b
const BACKSLASH = 0x5c
const BRACKET_CLOSE = 0x5d
const BRACE_OPEN = 0x7b
const BRACE_CLOSE = 0x7d

/**
 * The member `agent` of the object that a line should be: the text between the quotes, escapes resolved; undefined where
 * there is none. Of what follows it nothing is said. An exception for each of a million lines that are no JSON would take
 * seconds, and so would parsing lines that the shard parses again.
 */
export function agentMember(line: Buffer): string | undefined {
  let at = pastSpace(line, 0)
  if (line[at++] !== BRACE_OPEN) return undefined
  let depth = 1
  let atKey = true
  while (at < line.length && depth > 0) {
    const byte = line[at]
    if (byte === QUOTE) {
      const end = stringEnd(line, at)
      const after = pastSpace(line, end)
      if (depth === 1 && atKey && line[after] === COLON && stringOf(line, at, end) === 'agent') {
        const value = pastSpace(line, after + 1)
        return line[value] === QUOTE ? stringOf(line, value, stringEnd(line, value)) : undefined
      }
      at = end
      continue
    }
    if (byte === BRACE_OPEN || byte === BRACKET_OPEN) depth++
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) depth--
    else if (depth === 1 && byte === COMMA) atKey = true
    else if (depth === 1 && byte === COLON) atKey = false
    at++
  }
  return undefined
}

/** Where the string that begins at `start` has ended. */
function stringEnd(line: Buffer, start: number): number {
  let at = start + 1
  while (at < line.length && line[at] !== QUOTE) at += line[at] === BACKSLASH ? 2 : 1
  return at + 1
}

/** Bytes of a string past which it is neither the name of a member nor that of an agent. */
const STRING_BYTES_MAX = 1_024

function stringOf(line: Buffer, start: number, end: number): string | undefined {
  if (end > line.length || end - start > STRING_BYTES_MAX) return undefined
  const text = line.toString('utf8', start + 1, end - 1)
  if (!text.includes('\\')) return text
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    // No string of JSON, so no name either.
    return undefined
  }
}

function pastSpace(line: Buffer, from: number): number {
  let at = from
  while (isSpace(line[at])) at++
  return at
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (!isSpace(bytes[at])) return false
  return true
}

/** Whether a chunk has nothing but blank lines. */
export function isBlankChunk(bytes: Uint8Array): boolean {
  for (const byte of bytes) if (byte !== LINE_FEED && !isSpace(byte)) return false
  return true
}
