import type { OutcomeFrame } from '../../src/protocol/frame.js'

/** Sends a frame to the front thread. */
export type Tell = (frame: OutcomeFrame) => void

/** How far the log is: the last segment that was written, and the last one that is on disk for sure. */
export type LogState = () => { written: number; durable: number }

/**
 * What a shard has decided and not told. A frame leaves once all segments are on disk that were written when it was made:
 * its outcomes and reads may be of any of them. Frames leave in the order in which they were made.
 */
export class Untold {
  readonly #log: LogState
  readonly #tell: Tell
  readonly #frames: { segment: number; frame: OutcomeFrame }[] = []

  constructor(log: LogState, tell: Tell) {
    this.#log = log
    this.#tell = tell
  }

  /** Tells a frame, as soon as that may be. */
  add(frame: OutcomeFrame): void {
    this.#frames.push({ segment: this.#log().written, frame })
    this.tellDurable()
  }

  /** Tells what waited for the disk, as far as it is there now. */
  tellDurable(): void {
    const { durable } = this.#log()
    let told = 0
    for (const { segment, frame } of this.#frames) {
      if (segment > durable) break
      this.#tell(frame)
      told += 1
    }
    this.#frames.splice(0, told)
  }
}
