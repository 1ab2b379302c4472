import type { Agent } from './agent.js'

class Generation {
  readonly byName = new Map<string, Agent>()
  readonly byNo = new Map<number, Agent>()

  add(agent: Agent): void {
    this.byName.set(agent.name, agent)
    this.byNo.set(agent.no, agent)
  }
}

/**
 * A cache of recently used agents in two generations. A used agent goes into the newer one. When that is
 * full, and at intervals, the older generation is dropped and the newer one becomes the older. So idle agents
 * are evicted, without a list that has to be ordered at each use.
 */
export class OpenAgents {
  readonly #generationMax: number
  #newer = new Generation()
  #older = new Generation()

  /** @param agentsMax the maximum number of agents; the most recently used half is never evicted */
  constructor(agentsMax: number) {
    this.#generationMax = agentsMax / 2
  }

  /** The agent with this name. Counts as a use. */
  use(name: string): Agent | undefined {
    const used = this.#newer.byName.get(name)
    if (used !== undefined) return used
    const idle = this.#older.byName.get(name)
    if (idle !== undefined) this.add(idle)
    return idle
  }

  /** The agent with this number. Does not count as a use. */
  byNo(no: number): Agent | undefined {
    return this.#newer.byNo.get(no) ?? this.#older.byNo.get(no)
  }

  /** Adds an agent. Counts as a use. */
  add(agent: Agent): void {
    if (this.#newer.byName.size >= this.#generationMax) this.evictIdle()
    this.#newer.add(agent)
  }

  remove({ name, no }: Agent): void {
    for (const { byName, byNo } of [this.#newer, this.#older]) {
      byName.delete(name)
      byNo.delete(no)
    }
  }

  /** Evicts the agents that were not used since the last call. */
  evictIdle(): void {
    this.#older = this.#newer
    this.#newer = new Generation()
  }
}
