import { CallerTurns } from '../../../base/caller-turns.js'
import { statusOf } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Command, Outcome } from '../../../protocol/messages.js'

export interface PageRequest {
  /** The id of the principal. */
  caller: string
  command: Command
  /** Called once, or never if the stream ends before the page is requested. */
  receive(outcome: Outcome): void
  /** Whether the stream still waits for it. */
  isOpen(): boolean
}

/**
 * Requests pages of streams from one shard, a few at a time: if a thousand streams fall behind together, the
 * shard and the front thread still do other work in between. Callers take turns, so that the streams of one
 * delay no page of another by more than one page.
 */
export class PageQueue {
  readonly #send: (command: Command, receive: (outcome: Outcome) => void) => void
  readonly #waiting = new CallerTurns<PageRequest>()
  /** Requests that the shard could not answer at the time. */
  readonly #refused: PageRequest[] = []
  #inFlight = 0

  constructor(send: (command: Command, receive: (outcome: Outcome) => void) => void) {
    this.#send = send
  }

  enqueue(request: PageRequest): void {
    this.#waiting.push(request.caller, request)
    this.#sendNext()
  }

  /** Requests again the pages that were refused because the shard was full or away, or its lease had ended. */
  retry(): void {
    for (const request of this.#refused.splice(0)) this.#waiting.push(request.caller, request)
    this.#sendNext()
  }

  #sendNext(): void {
    while (this.#inFlight < limits.streamPagesInFlightMax) {
      const request = this.#waiting.take()
      if (request === undefined) return
      if (!request.isOpen()) continue
      this.#inFlight++
      const receive = (outcome: Outcome) => {
        this.#inFlight--
        if ('code' in outcome && statusOf(outcome) === 503) this.#refused.push(request)
        else request.receive(outcome)
        this.#sendNext()
      }
      this.#send(request.command, receive)
    }
  }
}
