import { hash } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { TreeHasher } from '../../../src/strand/merkle.js'
import { agentRowOf, type AgentRow } from './agent.js'
import type { Environment } from '../environment.js'
import { openEnvironment } from '../open-environment.js'
import { inOrder } from '../in-order.js'
import { strandEnd } from './records.js'

interface ShardAgent {
  name: Buffer
  row: AgentRow
  environment: Environment
}

/** Heads between two calls of `onHeads`. */
const PROGRESS_HEADS = 256

/**
 * The RFC 6962 root over the chain heads of all agents in all shards, in the byte order of their names. A
 * leaf is SHA-256(0x00 ‖ text), where the text is four lines ending in LF: name, strand, seq and hash of the
 * last record. Different states of a data directory have different roots (docs/adr/0020-backup.md).
 * @param onHeads called with the number of heads since the last call; may throw to stop the work
 * @returns 64 hex digits
 */
export async function headsRoot(paths: readonly string[], onHeads: (count: number) => void): Promise<string> {
  const environments = paths.map((path) => openEnvironment(path, 'read'))
  try {
    const tree = new TreeHasher()
    for (const { name, row, environment } of inOrder(environments.map(agentsOf), isBefore)) {
      const end = strandEnd(environment, row.no)
      assert(end !== undefined, 'an agent has its genesis record')
      const text = `\0${name.toString()}\n${row.strand}\n${end.record.seq}\n${end.record.hash}\n`
      tree.append(hash('sha256', text, 'buffer'))
      if (tree.size % PROGRESS_HEADS === 0) onHeads(PROGRESS_HEADS)
    }
    return Buffer.from(tree.root()).toString('hex')
  } finally {
    for (const { root } of environments) await root.close()
  }
}

function* agentsOf(environment: Environment): Generator<ShardAgent> {
  for (const { key, value } of environment.agents.getRange({})) {
    yield { name: key, row: agentRowOf(key.toString(), value), environment }
  }
}

function isBefore(one: ShardAgent, other: ShardAgent): boolean {
  return one.name.compare(other.name) < 0
}
