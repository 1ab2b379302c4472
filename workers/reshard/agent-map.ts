import { assert } from '../../src/base/assert.js'
import { shardOf } from '../../src/strand/placement.js'
import type { AgentNumber } from '../store/row-move.js'

/** The agents of one old shard, in five bytes each, so that millions of agents fit into memory. */
interface Column {
  shards: Uint8Array
  numbers: Uint32Array
}

/**
 * Maps agents of the old shards to their new shards and numbers. Numbers are assigned in the order of `add`,
 * without gaps.
 */
export class AgentMap {
  readonly #columns: Column[]
  /** The number of agents in each new shard. */
  readonly counts: number[]

  /** @param agents the number of agents in each old shard */
  constructor(agents: readonly number[], shards: number) {
    this.#columns = agents.map((count) => ({
      shards: new Uint8Array(count),
      numbers: new Uint32Array(count),
    }))
    this.counts = Array.from({ length: shards }, () => 0)
  }

  /** Assigns an agent its new shard and number. */
  add(name: string, from: AgentNumber): void {
    const column = this.#column(from)
    const shard = shardOf(name, this.counts.length)
    const no = this.counts[shard] ?? 0
    this.counts[shard] = no + 1
    column.shards[from.no] = shard
    column.numbers[from.no] = no
  }

  /** The new shard and number of an agent. */
  find(from: AgentNumber): AgentNumber {
    const { shards, numbers } = this.#column(from)
    return { shard: shards[from.no] ?? 0, no: numbers[from.no] ?? 0 }
  }

  /** All agents, by their old shard and number. */
  *all(): Generator<AgentNumber> {
    for (const [shard, { shards }] of this.#columns.entries())
      for (let no = 0; no < shards.length; no++) yield { shard, no }
  }

  #column({ shard, no }: AgentNumber): Column {
    const column = this.#columns[shard]
    assert(column !== undefined && no < column.shards.length, 'a row names an agent of its shard')
    return column
  }
}
