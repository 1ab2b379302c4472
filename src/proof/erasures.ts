import type { Erasure } from './chain-check.js'

/** Erased records that nothing in an export explains. */
export interface Unexplained {
  count: number
  /** The first of them. */
  firstSeq: number
}

/**
 * Looks for the `sys/erase` of each erased record: whoever hands on an export can leave a body out and call it erased, and
 * only a record of the strand tells an erasure from that. It holds one entry for each erased record.
 */
export class ErasureCheck {
  readonly #open = new Map<number, string>()

  /** Takes what records say, in their order: what erases comes behind what is erased. */
  take(erasure: Erasure): void {
    if (erasure.kind === 'erased') this.#open.set(erasure.seq, erasure.hash)
    else if (this.#open.get(erasure.targetSeq) === erasure.target) this.#open.delete(erasure.targetSeq)
  }

  /** What no record that was taken explains; undefined where there is none. */
  get unexplained(): Unexplained | undefined {
    // A map keeps the order in which records came.
    for (const firstSeq of this.#open.keys()) return { count: this.#open.size, firstSeq }
    return undefined
  }
}
