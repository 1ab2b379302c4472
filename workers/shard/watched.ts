/** Which fronts watch which agents: they are sent what these commit as events. The empty name stands for all agents. */
export class Watched {
  readonly #fronts = new Map<string, Set<number>>()

  /** Whether nobody watches anything. */
  get isEmpty(): boolean {
    return this.#fronts.size === 0
  }

  /** Whether any front watches an agent by its name. */
  has(agent: string): boolean {
    return this.#fronts.has(agent)
  }

  /** Whether a front watches an agent by its name. */
  isWatchedBy(front: number, agent: string): boolean {
    return this.#fronts.get(agent)?.has(front) === true
  }

  /** A front begins to watch an agent, or stops. */
  watch(front: number, agent: string, on: boolean): void {
    const fronts = this.#fronts.get(agent) ?? new Set()
    if (on) fronts.add(front)
    else fronts.delete(front)
    if (fronts.size > 0) this.#fronts.set(agent, fronts)
    else this.#fronts.delete(agent)
  }

  /** A front has gone. */
  leave(front: number): void {
    for (const agent of this.#fronts.keys()) this.watch(front, agent, false)
  }
}
