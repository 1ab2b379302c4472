import type { Environment } from '../store/environment.js'
import { rowCount } from '../store/environment.js'

/** A record as sizes of strands go by it. */
interface SizedRecord {
  /** Number of its agent. */
  no: number
  seq: number
  bodyBytes: number
}

/**
 * Body bytes of the strands of one shard up to each of their records, which come in the order in which they lie: a strand
 * of which a part was imported comes in pieces. Where a piece begins, the run before it knows. 16 bytes an agent.
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

  /** The seq behind the last record of the agent that came. */
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
