/**
 * What the clients of a load have learned, which must hold for every later request: minimum lengths of
 * strands, revoked credentials, and erased records.
 */
export class Known {
  /** Broken guarantees. */
  readonly breaches: string[] = []
  /** Requests answered by a serving node. */
  answered = 0
  readonly revoked: string[] = []
  readonly erased: { agent: string; hash: string }[] = []
  readonly #lengths = new Map<string, number>()
  /** When the last answer arrived, and the longest time without one. */
  #answeredAtMs = performance.now()
  #longestOutageMs = 0
  /** When processes last served a shard, and from when another process has served it. */
  readonly #served = new Map<string, number>()
  readonly #replaced = new Map<string, number>()

  /** The last known seq of an agent; -1 if there is none. */
  at(agent: string): number {
    return this.#lengths.get(agent) ?? -1
  }

  /** A client has learned that an agent's strand has a record of this seq. */
  saw(agent: string, seq: number): void {
    this.answered += 1
    const nowMs = performance.now()
    this.#longestOutageMs = Math.max(this.#longestOutageMs, nowMs - this.#answeredAtMs)
    this.#answeredAtMs = nowMs
    if (seq > this.at(agent)) this.#lengths.set(agent, seq)
  }

  /** The longest time without an answer since the last call, milliseconds. Time without load counts, too. */
  takeOutageMs(): number {
    const outageMs = this.#longestOutageMs
    this.#longestOutageMs = 0
    return outageMs
  }

  /** A read was answered; when it was sent, the strand was known to have a record of `floor`. */
  read(what: string, { agent, seq, floor }: { agent: string; seq: number; floor: number }): void {
    if (!(seq >= floor))
      this.breaches.push(`${what} showed ${agent} up to ${seq}, which was known to have ${floor} before`)
    this.saw(agent, seq)
  }

  /** A write was answered; when it was sent, the strand was known to have a record of `floor`. */
  wrote(what: string, { agent, seq, floor }: { agent: string; seq: number; floor: number }): void {
    if (!(seq > floor))
      this.breaches.push(`${what} has seq ${seq} of ${agent}, of which ${floor} was answered before`)
    this.saw(agent, seq)
  }

  /**
   * A process has answered a request for a shard. After another process has served that shard, the first one
   * must never serve it again: a node that loses shards ends, unless it transferred them.
   */
  served({ life: process, shard }: { life: string; shard: number }, sentAtMs: number): void {
    const life = `${process}, shard ${shard}`
    const nowMs = performance.now()
    const replacedAtMs = this.#replaced.get(life) ?? Infinity
    if (sentAtMs > replacedAtMs) {
      const late = Math.round(sentAtMs - replacedAtMs)
      this.breaches.push(`Process ${life} has served ${late} ms after another process did`)
    }
    for (const [other, atMs] of this.#served) {
      const isOfShard = other.endsWith(`, shard ${shard}`)
      if (other === life || !isOfShard || atMs >= sentAtMs) continue
      this.#replaced.set(other, nowMs)
      this.#served.delete(other)
    }
    this.#served.set(life, nowMs)
  }
}
