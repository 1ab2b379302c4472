import type { Erasure } from './chain-check.js'

/** Erased records that nothing in an export explains. */
export interface Unexplained {
  count: number
  /** The first of them. */
  firstSeq: number
}

/**
 * Looks for the `sys/erase` of each erased record: whoever passes an export on can leave a body out and call it erased,
 * and only that record shows a real erasure. It keeps one entry for each erased record.
 */
export class ErasureCheck {
  readonly #open = new Map<number, string>()

  /** Takes what records say, in their order: the erasing record comes after the erased one. */
  take(erasure: Erasure): void {
    if (erasure.kind === 'erased') this.#open.set(erasure.seq, erasure.hash)
    else if (this.#open.get(erasure.targetSeq) === erasure.target) this.#open.delete(erasure.targetSeq)
  }

  /** Erasures that no record so far explains; undefined where there are none. */
  get unexplained(): Unexplained | undefined {
    // A map keeps the order in which records came.
    for (const firstSeq of this.#open.keys()) return { count: this.#open.size, firstSeq }
    return undefined
  }
}
