import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'

/** Who waits. */
interface Wait {
  untilMs: number
  resolve: () => void
}

/** Callers that wait for a while until a shard, or all, may be answered from again: one timer looks for all of them. */
export class ShardWaits {
  readonly #isCurrent: (shard: number | undefined) => boolean
  /** By the shard, or undefined for all; in the order of their times. */
  readonly #waits = new Map<number | undefined, Wait[]>()
  #count = 0
  #looks: NodeJS.Timeout | undefined

  constructor(isCurrent: (shard: number | undefined) => boolean) {
    this.#isCurrent = isCurrent
  }

  /** Resolves when it may be answered from, or is not waited for any longer; at once where too many wait already. */
  async until(shard: number | undefined): Promise<void> {
    if (this.#isCurrent(shard) || this.#count >= limits.shardQueueMax) return
    await new Promise<void>((resolve) => {
      const waits = this.#waits.get(shard) ?? []
      waits.push({ untilMs: steadyClock() + limits.shardMoveMs, resolve })
      this.#waits.set(shard, waits)
      this.#count += 1
      this.#looks ??= setInterval(() => this.#look(), limits.shardMoveLookMs)
    })
  }

  #look(): void {
    const nowMs = steadyClock()
    for (const [shard, waits] of this.#waits) {
      const isCurrent = this.#isCurrent(shard)
      const waiting = isCurrent ? -1 : waits.findIndex(({ untilMs }) => untilMs > nowMs)
      const over = waits.splice(0, waiting === -1 ? waits.length : waiting)
      this.#count -= over.length
      for (const { resolve } of over) resolve()
      if (waits.length === 0) this.#waits.delete(shard)
    }
    if (this.#count > 0) return
    clearInterval(this.#looks)
    this.#looks = undefined
  }
}
