import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { limits } from '../base/limits.js'
import type { Segment } from '../proof/node/segment.js'
import type { SegmentResult } from '../proof/segment-check.js'

/** Threads that check segments of an export, one a core. */
export class SegmentPool {
  readonly #pool: Piscina
  /** Segments that may be under way: one in each thread and one that waits for it. */
  readonly segmentsMax: number

  constructor() {
    const threads = Math.min(availableParallelism(), limits.verifyThreadsMax)
    this.segmentsMax = 2 * threads
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('../../workers/verify.js', import.meta.url)),
      minThreads: threads,
      maxThreads: threads,
      maxQueue: this.segmentsMax,
    })
  }

  check(segment: Segment): Promise<SegmentResult | undefined> {
    return this.#pool.run(segment, { name: 'verifySegment' })
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }
}
