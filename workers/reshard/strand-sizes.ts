import type { Environment } from '../store/environment.js'
import { rowCount } from '../store/environment.js'

/** What the sizes of strands need of a record. */
interface SizedRecord {
  /** Number of its agent. */
  no: number
  seq: number
  bodyBytes: number
}

/**
 * Counts the body bytes of the strands of one shard up to each of their records. Records come in the order in which
 * they are stored, so a partly imported strand comes in pieces; where a piece begins, the run before it has the size.
 * Takes 16 bytes an agent.
 */
export class StrandSizes {
  readonly #environment: Environment
  readonly #nextSeqs: Float64Array
  readonly #bytes: Float64Array

  constructor(environment: Environment) {
    const agents = rowCount(environment.names)
    this.#environment = environment
    this.#nextSeqs = new Float64Array(agents)
    this.#bytes = new Float64Array(agents)
  }

  /** The seq after the agent's last record so far. */
  nextSeq(no: number): number {
    return this.#nextSeqs[no] ?? 0
  }

  /** Takes the next record. @returns body bytes of its strand up to it */
  add({ no, seq, bodyBytes }: SizedRecord): number {
    const before =
      seq === this.#nextSeqs[no]
        ? (this.#bytes[no] ?? 0)
        : seq === 0
          ? 0
          : (this.#environment.runs.before(no, seq - 1)?.strandBytes ?? 0)
    this.#nextSeqs[no] = seq + 1
    this.#bytes[no] = before + bodyBytes
    return before + bodyBytes
  }
}
