/**
 * What the clients of a load have learned, and so must be true of all that is asked from then on: how long each strand is
 * at least, which credentials were revoked, and which records were erased.
 */
export class Known {
  /** What must not be. */
  readonly breaches: string[] = []
  /** Requests that were answered by a node that serves. */
  answered = 0
  readonly revoked: string[] = []
  readonly erased: { agent: string; hash: string }[] = []
  readonly #lengths = new Map<string, number>()
  /** When the last answer came, and how long there was none at most. */
  #answeredAtMs = performance.now()
  #silenceMs = 0
  /** When processes were last seen to serve a shard, and from when on another one did. */
  readonly #served = new Map<string, number>()
  readonly #replaced = new Map<string, number>()

  /** The last seq of an agent that anybody was told; -1 where there was none. */
  at(agent: string): number {
    return this.#lengths.get(agent) ?? -1
  }

  /** Somebody was told that an agent's strand has a record of this seq. */
  saw(agent: string, seq: number): void {
    this.answered += 1
    const nowMs = performance.now()
    this.#silenceMs = Math.max(this.#silenceMs, nowMs - this.#answeredAtMs)
    this.#answeredAtMs = nowMs
    if (seq > this.at(agent)) this.#lengths.set(agent, seq)
  }

  /** How long nobody answered at most, since it was asked last, milliseconds. Time without load counts, too. */
  takeSilence(): number {
    const silenceMs = this.#silenceMs
    this.#silenceMs = 0
    return silenceMs
  }

  /** A read was answered that was asked when a strand was known to have a record of `floor`. */
  read(what: string, { agent, seq, floor }: { agent: string; seq: number; floor: number }): void {
    if (!(seq >= floor))
      this.breaches.push(`${what} showed ${agent} up to ${seq}, which was known to go up to ${floor} before`)
    this.saw(agent, seq)
  }

  /** A write was answered that was asked when a strand was known to have a record of `floor`. */
  wrote(what: string, { agent, seq, floor }: { agent: string; seq: number; floor: number }): void {
    if (!(seq > floor))
      this.breaches.push(`${what} has seq ${seq} of ${agent}, of which ${floor} was answered before`)
    this.saw(agent, seq)
  }

  /**
   * A process served a shard that was asked at a time. Once another one has served that after it, it never does again: whoever loses
   * shards ends, unless it gave them up.
   */
  served({ life: process, shard }: { life: string; shard: number }, askedAtMs: number): void {
    const life = `${process}, shard ${shard}`
    const nowMs = performance.now()
    const replacedAtMs = this.#replaced.get(life) ?? Infinity
    if (askedAtMs > replacedAtMs) {
      const late = Math.round(askedAtMs - replacedAtMs)
      this.breaches.push(`Process ${life} is served ${late} ms after another one has served it`)
    }
    for (const [other, atMs] of this.#served) {
      const isOfShard = other.endsWith(`, shard ${shard}`)
      if (other === life || !isOfShard || atMs >= askedAtMs) continue
      this.#replaced.set(other, nowMs)
      this.#served.delete(other)
    }
    this.#served.set(life, nowMs)
  }
}
