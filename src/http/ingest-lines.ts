import { refuse, type Refusal } from '../base/errors.js'
import type { LineFault } from '../protocol/messages.js'
import { agentParameter, agentRefusal } from '../routes/parameters.js'
import type { Principal } from '../routes/route.js'
import type { LineChunk } from './ingest-splitter.js'

/** Lines of one shard: their bytes, each with its line feed, and their numbers. */
export interface ShardLines {
  bytes: Buffer[]
  numbers: number[]
}

const lineFeed = Buffer.from('\n')

/**
 * Sends each line `{agent, data, type?}` of a chunk to the shard of its agent. Only the agent is looked at here; the
 * shard reads the line by the strict rules.
 */
export function addressLines(
  chunk: LineChunk,
  { shardOf, principal }: { shardOf: (agent: string) => number; principal: Principal },
): { byShard: Map<number, ShardLines>; faults: LineFault[] } {
  const byShard = new Map<number, ShardLines>()
  const faults: LineFault[] = []
  let line = chunk.firstLine
  for (let from = 0; from < chunk.bytes.length; line++) {
    const found = chunk.bytes.indexOf(0x0a, from)
    const to = found === -1 ? chunk.bytes.length : found
    const bytes = chunk.bytes.subarray(from, to)
    from = to + 1
    if (isBlank(bytes)) continue
    const agent = agentOf(bytes, principal)
    if (typeof agent !== 'string') {
      faults.push({ line, agent: '', refusal: agent })
      continue
    }
    const shard = shardOf(agent)
    let lines = byShard.get(shard)
    if (lines === undefined) {
      lines = { bytes: [], numbers: [] }
      byShard.set(shard, lines)
    }
    lines.bytes.push(bytes, lineFeed)
    lines.numbers.push(line)
  }
  return { byShard, faults }
}

function agentOf(bytes: Buffer, principal: Principal): string | Refusal {
  const value = parse(bytes)
  if (typeof value !== 'object' || value === null || !('agent' in value) || typeof value.agent !== 'string') {
    return refuse('validation_failed', 'Expected a JSON object {agent, data, type?}')
  }
  const agent = agentParameter(value.agent)
  if (typeof agent !== 'string') return refuse('validation_failed', agent.detail)
  return agentRefusal({ principal }, agent) ?? agent
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    // Not JSON: reported as the line's fault by the caller.
    return undefined
  }
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}
