import { commitDurably, type Environment } from './environment.js'

/** The most rows of filling that one step writes: a megabyte. */
const STEP_ROWS_MAX = 256

/**
 * Roughly how many free pages the transactions themselves reuse: the nearer the free pages come to it, the smaller the
 * steps.
 */
const PAGES_IN_TURN = 32

/** Bytes of a row: with LMDB's headers one page of its own. */
const ROW_BYTES = 4_000

/** Pages at the beginning of the file that belong to no tree. */
const META_PAGES = 2

/** Pages of one tree. */
interface PageCounts {
  treeBranchPageCount: number
  treeLeafPageCount: number
  overflowPages: number
}

/** Rows that one step removes again. */
const CLEAR_ROWS = 1_024

/** The row that says that there is something to overwrite; it comes after all others, whose keys have 6 bytes. */
const mark = Buffer.alloc(7, 0xff)

const filling = Buffer.alloc(ROW_BYTES)

/** Notes, within the transaction of an erasure, that there is something to overwrite. */
export function markForScrubbing({ filling }: Environment): void {
  filling.putSync(mark, Buffer.alloc(0))
}

/**
 * Overwrites the free pages of the data file after an erasure. LMDB never changes a page in place: the one that held an
 * erased body is free from then on, and keeps its bytes until it is used again. So rows of one page each are written
 * until the file has to grow, which shows that no free page is left, and then removed (docs/adr/0015-erasure.md).
 */
export class Scrubber {
  readonly #environment: Environment
  #phase: 'idle' | 'fill' | 'clear'
  /** The transaction that made the pages free. Later snapshots do not see them, and later transactions may use them. */
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

  /** Whether something has to be overwritten. */
  get pending(): boolean {
    return this.#phase !== 'idle'
  }

  /** Begins, after the transaction of an erasure. */
  begin(): void {
    this.#phase = 'fill'
    this.#freedBy = this.#stats().lastTxnId
  }

  /**
   * Whether there is something to do now: while a snapshot from before the erasure is open, its pages cannot be used.
   */
  get ready(): boolean {
    if (this.#phase === 'idle') return false
    return this.#phase === 'clear' || this.#oldestSnapshot() > this.#freedBy
  }

  /** One part of the work, in a transaction of its own. */
  step(): void {
    if (this.#phase === 'fill') this.#fill()
    else if (this.#phase === 'clear') this.#clear()
  }

  #fill(): void {
    const before = this.#stats()
    const ahead = Math.floor((this.#freePages(before.lastPageNumber) - PAGES_IN_TURN) / 2)
    // Small steps in the end, so that the file grows by a few pages only.
    const rows = Math.max(1, Math.min(ahead, STEP_ROWS_MAX))
    commitDurably(this.#environment, () => {
      for (let row = 0; row < rows; row++) this.#environment.filling.putSync(rowKey(this.#nextRow++), filling)
    })
    // The transaction right after the erasure may not use its pages yet: LMDB could still have to go back to before it.
    if (before.lastTxnId <= this.#freedBy) return
    // A long list of free pages may itself take pages at the end of the file, so growth alone proves nothing.
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

  /** Number of the transaction that the oldest open snapshot sees, in whichever thread or process; Infinity for none. */
  #oldestSnapshot(): number {
    const { root } = this.#environment
    // Our own is renewed by the next read.
    root.resetReadTxn()
    const seen = [...root.readerList().matchAll(/^\s*\d+\s+[0-9a-f]+\s+(\d+)\s*$/gm)].map(([, id]) =>
      Number(id),
    )
    return Math.min(...seen)
  }

  /** Pages of the file that no table takes. */
  #freePages(lastPageNumber: number): number {
    const { root, runs: _tablesOfTheirOwn, ...tables } = this.#environment
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
