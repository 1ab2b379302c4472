import type { Agent } from './agent.js'

/** Agents in memory, by name and by number. */
class Lot {
  readonly byName = new Map<string, Agent>()
  readonly byNo = new Map<number, Agent>()

  add(agent: Agent): void {
    this.byName.set(agent.name, agent)
    this.byNo.set(agent.no, agent)
  }
}

/**
 * The agents that were used lately, in two lots. An agent that is used goes into the newer one. When that is full, and
 * at intervals, the older one is dropped and the newer takes its place. So an idle agent takes no memory after a while,
 * and no list has to be kept in order at each use.
 */
export class OpenAgents {
  readonly #lotMax: number
  #newer = new Lot()
  #older = new Lot()

  /** @param agentsMax how many are kept at most; the half used last is always kept */
  constructor(agentsMax: number) {
    this.#lotMax = agentsMax / 2
  }

  /** The agent of that name, which counts as used. */
  use(name: string): Agent | undefined {
    const used = this.#newer.byName.get(name)
    if (used !== undefined) return used
    const kept = this.#older.byName.get(name)
    if (kept !== undefined) this.keep(kept)
    return kept
  }

  /** The agent of that number; this does not count as a use. */
  byNo(no: number): Agent | undefined {
    return this.#newer.byNo.get(no) ?? this.#older.byNo.get(no)
  }

  /** Keeps an agent, which counts as used. */
  keep(agent: Agent): void {
    if (this.#newer.byName.size >= this.#lotMax) this.turnOver()
    this.#newer.add(agent)
  }

  /** Drops agents that were not used since the last call. */
  turnOver(): void {
    this.#older = this.#newer
    this.#newer = new Lot()
  }
}
