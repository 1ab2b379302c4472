import { steadyClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Command } from '../../protocol/messages.js'

/** A queued command with the callback for its outcome. */
export interface HeldCommand<Callback> {
  command: Command
  receive: Callback
  bytes: number
}

const noOwner = refuse('unavailable', 'No node serves the shard of this agent at the moment, try again', {
  retryAfterSecs: 1,
})
const full = refuse('overloaded', 'Too many requests wait for the shard of this agent, try again', {
  retryAfterSecs: 1,
})

/**
 * The refusal of a command if the queue of its shard is full. The end of uploads always has a place: a request
 * sends one at most, after its first command was answered.
 */
export function refusalIfFull({ kind }: Command, { count, bytes }: Record<'count' | 'bytes', number>) {
  const isFull = count >= limits.shardQueueMax || bytes > limits.shardQueueBytesMax
  return isFull && kind !== 'uploadsEnd' ? full : undefined
}

/**
 * Queues commands for a shard that moves between nodes. A command that finds no owner in time is refused and
 * has had no effect (docs/adr/0048-owners-of-shards.md).
 */
export class HeldCommands<Callback extends (refusal: Refusal, proven: boolean) => void> {
  readonly #held: (HeldCommand<Callback> & { untilMs: number })[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined

  /** @returns a refusal when the queue is full */
  add(held: HeldCommand<Callback>): Refusal | undefined {
    const refusal = refusalIfFull(held.command, { count: this.#held.length, bytes: this.#bytes })
    if (refusal !== undefined) return refusal
    this.#held.push({ ...held, untilMs: steadyClock() + limits.shardMoveMs })
    this.#bytes += held.bytes
    this.#timer ??= setInterval(() => this.#refuseLate(), limits.shardMoveCheckMs)
    return undefined
  }

  /** Removes and returns all commands in order of arrival. */
  takeAll(): HeldCommand<Callback>[] {
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
