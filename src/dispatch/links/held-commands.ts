import { steadyClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Command } from '../../protocol/messages.js'

/** A command that waits, and what takes its outcome. */
export interface HeldCommand<Receive> {
  command: Command
  receive: Receive
  bytes: number
}

const noOwner = refuse('unavailable', 'No node serves the shard of this agent just now, try again', {
  retryAfterSecs: 1,
})
const full = refuse('overloaded', 'Too many requests wait for the shard of this agent, try again', {
  retryAfterSecs: 1,
})

/**
 * Commands of a front for a shard that moves from one node to another: they wait for the next owner for a while, and are refused
 * then (docs/adr/0048-owners-of-shards.md). Nothing has become of them.
 */
export class HeldCommands<Receive extends (refusal: Refusal, proven: boolean) => void> {
  readonly #held: (HeldCommand<Receive> & { untilMs: number })[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  /** @returns a refusal where too many wait already */
  add(held: HeldCommand<Receive>): Refusal | undefined {
    const isFull = this.#held.length >= limits.shardQueueMax || this.#bytes > limits.shardQueueBytesMax
    if (isFull) return full
    this.#held.push({ ...held, untilMs: steadyClock() + limits.shardMoveMs })
    this.#bytes += held.bytes
    this.#timer ??= setInterval(() => this.#refuseLate(), limits.shardMoveLookMs)
    return undefined
  }

  /** Hands all of them on, in the order in which they came. */
  takeAll(): HeldCommand<Receive>[] {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#bytes = 0
    return this.#held.splice(0)
  }

  #refuseLate(): void {
    const nowMs = steadyClock()
    const waiting = this.#held.findIndex(({ untilMs }) => untilMs > nowMs)
    const late = this.#held.splice(0, waiting === -1 ? this.#held.length : waiting)
    for (const { bytes } of late) this.#bytes -= bytes
    for (const { receive } of late) receive(noOwner, true)
    if (this.#held.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
