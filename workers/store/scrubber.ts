import { commitDurably, type Environment } from './environment.js'

/** The most rows that one step writes: a megabyte. */
const STEP_ROWS_MAX = 256

/**
 * The approximate number of free pages that the transactions themselves reuse. Steps get smaller near this
 * number.
 */
const PAGES_REUSED = 32

/** Bytes of a row, which fills one page with LMDB's headers. */
const ROW_BYTES = 4_000

/** Pages at the beginning of the file that belong to no tree. */
const META_PAGES = 2

interface PageCounts {
  treeBranchPageCount: number
  treeLeafPageCount: number
  overflowPages: number
}

/** The number of rows that one step removes. */
const CLEAR_ROWS = 1_024

/** The key of the row that marks a pending scrub. It sorts after all others, whose keys have 6 bytes. */
const mark = Buffer.alloc(7, 0xff)

const filling = Buffer.alloc(ROW_BYTES)

/** Marks the store for scrubbing, within the transaction of an erasure. */
export function markForScrubbing({ filling }: Environment): void {
  filling.putSync(mark, Buffer.alloc(0))
}

/**
 * Overwrites the free pages of the data file after an erasure. LMDB never changes a page in place: the page
 * that held an erased body becomes free, and keeps its bytes until it is reused. The scrubber writes rows of
 * one page each until the file grows, which shows that no free page is left, and then removes the rows
 * (docs/adr/0015-erasure.md).
 */
export class Scrubber {
  readonly #environment: Environment
  #phase: 'idle' | 'fill' | 'clear'
  /**
   * The transaction that freed the pages. Later snapshots do not see these pages, and later transactions may
   * reuse them.
   */
  #freedBy: number
  #nextRow = 0

  constructor(environment: Environment) {
    this.#environment = environment
    const interrupted = environment.filling.get(mark) !== undefined
    this.#phase = interrupted ? 'fill' : 'idle'
    this.#freedBy = this.#stats().lastTxnId
    for (const key of environment.filling.getKeys({ reverse: true, limit: 1, start: lastRow })) {
      this.#nextRow = key.readUIntBE(0, 6) + 1
    }
  }

  /** Whether a scrub is not complete. */
  get pending(): boolean {
    return this.#phase !== 'idle'
  }

  /** Starts a scrub. Call it after the transaction of an erasure. */
  begin(): void {
    this.#phase = 'fill'
    this.#freedBy = this.#stats().lastTxnId
  }

  /** Whether `step` has work now. A snapshot from before the erasure blocks the reuse of its pages. */
  get ready(): boolean {
    if (this.#phase === 'idle') return false
    return this.#phase === 'clear' || this.#oldestSnapshot() > this.#freedBy
  }

  /** Does one part of the work, in its own transaction. */
  step(): void {
    if (this.#phase === 'fill') this.#fill()
    else if (this.#phase === 'clear') this.#clear()
  }

  #fill(): void {
    const before = this.#stats()
    const ahead = Math.floor((this.#freePages(before.lastPageNumber) - PAGES_REUSED) / 2)
    // Small steps at the end, so that the file grows by only a few pages.
    const rows = Math.max(1, Math.min(ahead, STEP_ROWS_MAX))
    commitDurably(this.#environment, () => {
      for (let row = 0; row < rows; row++) this.#environment.filling.putSync(rowKey(this.#nextRow++), filling)
    })
    // The first transaction after the erasure may not reuse its pages: LMDB may still have to recover to the
    // state before it.
    if (before.lastTxnId <= this.#freedBy) return
    // The list of free pages may itself take pages at the end of the file, so a little growth proves nothing.
    const grown = this.#stats().lastPageNumber - before.lastPageNumber
    if (grown >= Math.ceil(rows / 2)) this.#phase = 'clear'
  }

  #clear(): void {
    let cleared = false
    commitDurably(this.#environment, () => {
      const keys = [
        ...this.#environment.filling.getKeys({ start: rowKey(0), end: lastRow, limit: CLEAR_ROWS }),
      ]
      for (const key of keys) this.#environment.filling.removeSync(key)
      cleared = keys.length < CLEAR_ROWS
      if (cleared) this.#environment.filling.removeSync(mark)
    })
    if (!cleared) return
    this.#phase = 'idle'
    this.#nextRow = 0
  }

  /**
   * The transaction that the oldest open snapshot sees, in any thread or process; Infinity if there is none.
   */
  #oldestSnapshot(): number {
    const { root } = this.#environment
    // The next read renews our own snapshot.
    root.resetReadTxn()
    const transactions = [...root.readerList().matchAll(/^\s*\d+\s+[0-9a-f]+\s+(\d+)\s*$/gm)].map(([, id]) =>
      Number(id),
    )
    return Math.min(...transactions)
  }

  /** The number of pages of the file that belong to no table. */
  #freePages(lastPageNumber: number): number {
    const { root, runs: _runs, trees: _trees, ...tables } = this.#environment
    const { free, ...own } = root.getStats() as PageCounts & { free: PageCounts }
    const used = [own, free, ...Object.values(tables).map((table) => table.getStats() as PageCounts)]
    const pages = used.reduce(
      (sum, one) => sum + one.treeBranchPageCount + one.treeLeafPageCount + one.overflowPages,
      META_PAGES,
    )
    return lastPageNumber + 1 - pages
  }

  #stats(): { lastTxnId: number; lastPageNumber: number } {
    const { root } = this.#environment
    root.resetReadTxn()
    return root.getStats() as { lastTxnId: number; lastPageNumber: number }
  }
}

const lastRow = rowKey(2 ** 48 - 1)

function rowKey(row: number): Buffer {
  const key = Buffer.alloc(6)
  key.writeUIntBE(row, 0, 6)
  return key
}
