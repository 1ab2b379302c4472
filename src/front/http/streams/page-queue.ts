import { limits } from '../../../base/limits/limits.js'
import type { Command, Outcome } from '../../../protocol/messages.js'

export interface PageRequest {
  command: Command
  receive(outcome: Outcome): void
  /** Whether the stream still waits for it. */
  isOpen(): boolean
}

/**
 * Requests pages of streams from one shard, a few at a time: if a thousand streams fall behind together, the
 * shard and the front thread still do other work in between.
 */
export class PageQueue {
  readonly #send: (command: Command, receive: (outcome: Outcome) => void) => void
  readonly #waiting: PageRequest[] = []
  #at = 0
  #inFlight = 0

  constructor(send: (command: Command, receive: (outcome: Outcome) => void) => void) {
    this.#send = send
  }

  enqueue(request: PageRequest): void {
    this.#waiting.push(request)
    this.#sendNext()
  }

  #sendNext(): void {
    while (this.#inFlight < limits.streamPagesInFlightMax) {
      const request = this.#next()
      if (request === undefined) return
      if (!request.isOpen()) continue
      this.#inFlight++
      const receive = (outcome: Outcome) => {
        this.#inFlight--
        request.receive(outcome)
        this.#sendNext()
      }
      this.#send(request.command, receive)
    }
  }

  #next(): PageRequest | undefined {
    const request = this.#waiting[this.#at++]
    if (request === undefined || this.#at > QUEUE_TRIM) {
      this.#waiting.splice(0, Math.min(this.#at, this.#waiting.length))
      this.#at = 0
    }
    return request
  }
}

/** How many processed entries of the queue are removed together. */
const QUEUE_TRIM = 1_024
