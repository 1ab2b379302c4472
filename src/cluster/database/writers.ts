import type { NodeRows } from './nodes.js'

/** A node that wrote a segment, and as which incarnation. */
interface Writer {
  node: string
  incarnation: number
}

/**
 * Which writers of segments are alive. One has ended where a row says so that verifies: its own, or that of the next incarnation of its
 * name, which joined behind it. What no row says anything of, as its row is missing or does not verify, may hold a lease yet: it
 * is alive until that must be over, from when its row was missed.
 */
export class Writers {
  /** How long a node may answer whose beats do not count, milliseconds, with the margin of the clocks. */
  readonly #patienceMs: number
  /** Since when nothing is known of a writer. */
  readonly #unknownSinceMs = new Map<string, number>()

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /** @param readAtMs when the reading of the rows had ended, of a clock that only goes on */
  isAlive(writer: Writer, { members }: NodeRows, readAtMs: number): boolean {
    const { node, incarnation } = writer
    const name = `${node} ${incarnation}`
    const row = members.find((one) => one.node === node)
    const isKnown = row !== undefined && (row.incarnation === incarnation || row.ended === incarnation)
    if (isKnown) {
      this.#unknownSinceMs.delete(name)
      return row.incarnation === incarnation && row.alive
    }
    const sinceMs = this.#unknownSinceMs.get(name) ?? readAtMs
    this.#unknownSinceMs.set(name, sinceMs)
    return readAtMs - sinceMs < this.#patienceMs
  }
}
