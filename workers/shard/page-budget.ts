import { limits } from '../../src/base/limits/limits.js'
import type { Effort } from '../../src/strand/condition.js'

/**
 * What one call for a page may cost a shard, which answers nobody else meanwhile. A call that has used it up ends, and
 * its caller continues with another one. It is checked between records, so one record can exceed it.
 */
export class PageBudget {
  /** What comparing costs. */
  readonly effort: Effort = { bytes: 0 }
  #records = 0
  #bytes = 0

  get spent(): boolean {
    return (
      this.#records >= limits.pageScanRecordsMax || this.#bytes + this.effort.bytes >= limits.pageWorkBytesMax
    )
  }

  /** Counts a record that was read, whatever becomes of it. */
  read(bodyBytes: number): void {
    this.#records++
    this.#bytes += bodyBytes
  }
}
