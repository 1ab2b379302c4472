import { assert } from '../../src/base/assert.js'
import { shardOf } from '../../src/strand/placement.js'

/** Where an agent is: its shard, and its number there. */
export interface AgentPlace {
  shard: number
  no: number
}

/** The agents of one old shard, in five bytes each: a million of them fit into memory. */
interface Column {
  shards: Uint8Array
  numbers: Uint32Array
}

/**
 * To which shards the agents of the old ones move. Numbers are given in the order in which agents are added, without
 * gaps.
 */
export class AgentMap {
  readonly #columns: Column[]
  readonly #counts: number[]

  /** @param agents how many each old shard has */
  constructor(agents: readonly number[], shards: number) {
    this.#columns = agents.map((count) => ({
      shards: new Uint8Array(count),
      numbers: new Uint32Array(count),
    }))
    this.#counts = Array.from({ length: shards }, () => 0)
  }

  /** How many agents moved to each new shard. */
  get counts(): readonly number[] {
    return this.#counts
  }

  /** Gives the agent `name`, which has the number `from.no` in an old shard, its place. */
  add(name: string, from: AgentPlace): AgentPlace {
    const column = this.#column(from)
    const shard = shardOf(name, this.#counts.length)
    const no = this.#counts[shard] ?? 0
    this.#counts[shard] = no + 1
    column.shards[from.no] = shard
    column.numbers[from.no] = no
    return { shard, no }
  }

  /** The new shard of an agent. */
  shardOf(from: AgentPlace): number {
    return this.#column(from).shards[from.no] ?? 0
  }

  /** The number of an agent in its new shard. */
  numberOf(from: AgentPlace): number {
    return this.#column(from).numbers[from.no] ?? 0
  }

  /** The agents of a new shard: where each was, and its number now. */
  *agentsOf(shard: number): Generator<{ from: AgentPlace; no: number }> {
    for (const [old, { shards, numbers }] of this.#columns.entries()) {
      for (let no = 0; no < shards.length; no++) {
        if (shards[no] === shard) yield { from: { shard: old, no }, no: numbers[no] ?? 0 }
      }
    }
  }

  #column({ shard, no }: AgentPlace): Column {
    const column = this.#columns[shard]
    assert(column !== undefined && no < column.shards.length, 'a row names an agent of its shard')
    return column
  }
}
