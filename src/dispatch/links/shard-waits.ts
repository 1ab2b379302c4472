import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'

interface Wait {
  untilMs: number
  resolve: () => void
}

/** Limited waits until a shard, or every shard, may be answered from. One timer checks all of them. */
export class ShardWaits {
  readonly #isCurrent: (shard: number | undefined) => boolean
  /** By shard, or undefined for all shards; in order of time. */
  readonly #waits = new Map<number | undefined, Wait[]>()
  #count = 0
  #timer: NodeJS.Timeout | undefined

  constructor(isCurrent: (shard: number | undefined) => boolean) {
    this.#isCurrent = isCurrent
  }

  /**
   * Resolves when the shard may be answered from or the wait times out; immediately when too many callers
   * wait.
   */
  async until(shard: number | undefined): Promise<void> {
    if (this.#isCurrent(shard) || this.#count >= limits.shardQueueMax) return
    await new Promise<void>((resolve) => {
      const waits = this.#waits.get(shard) ?? []
      waits.push({ untilMs: steadyClock() + limits.shardMoveMs, resolve })
      this.#waits.set(shard, waits)
      this.#count += 1
      this.#timer ??= setInterval(() => this.#check(), limits.shardMoveCheckMs)
    })
  }

  #check(): void {
    const nowMs = steadyClock()
    for (const [shard, waits] of this.#waits) {
      const isCurrent = this.#isCurrent(shard)
      const waiting = isCurrent ? -1 : waits.findIndex(({ untilMs }) => untilMs > nowMs)
      const done = waits.splice(0, waiting === -1 ? waits.length : waiting)
      this.#count -= done.length
      for (const { resolve } of done) resolve()
      if (waits.length === 0) this.#waits.delete(shard)
    }
    if (this.#count > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
