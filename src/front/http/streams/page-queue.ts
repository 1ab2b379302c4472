import { limits } from '../../../base/limits/limits.js'
import type { Command, Outcome } from '../../../protocol/messages.js'

/** A page for which a stream asks a shard. */
export interface PageAsked {
  command: Command
  receive(outcome: Outcome): void
  /** Whether anybody still waits for it. */
  wanted(): boolean
}

/**
 * Asks one shard for the pages of streams, a few at once: when a thousand streams fall behind together, the shard and
 * the front thread still serve others in between.
 */
export class PageQueue {
  readonly #send: (command: Command, receive: (outcome: Outcome) => void) => void
  readonly #waiting: PageAsked[] = []
  #at = 0
  #underWay = 0

  constructor(send: (command: Command, receive: (outcome: Outcome) => void) => void) {
    this.#send = send
  }

  ask(asked: PageAsked): void {
    this.#waiting.push(asked)
    this.#goOn()
  }

  #goOn(): void {
    while (this.#underWay < limits.streamPagesAtOnce) {
      const asked = this.#next()
      if (asked === undefined) return
      if (!asked.wanted()) continue
      this.#underWay++
      const receive = (outcome: Outcome) => {
        this.#underWay--
        asked.receive(outcome)
        this.#goOn()
      }
      this.#send(asked.command, receive)
    }
  }

  #next(): PageAsked | undefined {
    const asked = this.#waiting[this.#at++]
    if (asked === undefined || this.#at > QUEUE_TRIM) {
      this.#waiting.splice(0, Math.min(this.#at, this.#waiting.length))
      this.#at = 0
    }
    return asked
  }
}

/** How many used places of the queue are freed at once. */
const QUEUE_TRIM = 1_024
