import { limits } from '../../../base/limits/limits.js'
import type { StreamEvent } from '../../../protocol/stream-messages.js'
import { recordEvent } from './events.js'

/** A page of the latest events; `end` is true if it contains the last one. */
export interface RecentPage {
  text: string
  nextSeq: number
  end: boolean
}

/**
 * The latest events of one agent, formatted for sending. Streams that are slightly behind read them here:
 * even if a thousand of them fall behind together, no page is read from the shard.
 */
export class RecentEvents {
  #events: { seq: number; text: string }[] = []
  #bytes = 0

  push(events: readonly StreamEvent[]): void {
    for (const event of events) {
      const text = recordEvent(String(event.seq), event)
      this.#events.push({ seq: event.seq, text })
      this.#bytes += text.length
    }
    let dropped = 0
    while (this.#bytes > limits.streamRecentBytes && dropped < this.#events.length) {
      this.#bytes -= this.#events[dropped]?.text.length ?? 0
      dropped++
    }
    if (dropped > 0) this.#events = this.#events.slice(dropped)
  }

  /** Drops all events, because some may have been missed. */
  clear(): void {
    this.#events = []
    this.#bytes = 0
  }

  /**
   * The events from `nextSeq` that fit into one write; undefined if older ones must be read from the store.
   */
  from(nextSeq: number): RecentPage | undefined {
    const [oldest] = this.#events
    if (oldest === undefined || nextSeq < oldest.seq) return undefined
    let at = this.#firstFrom(nextSeq)
    let text = ''
    let next = nextSeq
    for (; at < this.#events.length; at++) {
      const event = this.#events[at]
      if (event === undefined || (text !== '' && text.length + event.text.length > limits.streamBufferBytes))
        break
      text += event.text
      next = event.seq + 1
    }
    return { text, nextSeq: next, end: at === this.#events.length }
  }

  #firstFrom(seq: number): number {
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle]?.seq ?? 0) < seq) low = middle + 1
      else high = middle
    }
    return low
  }
}
