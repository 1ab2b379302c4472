import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/*
 * Reads the pages of an LMDB data file without LMDB, which trusts its input: a wrong page number or length
 * makes it read foreign memory, and a truncated file crashes the process. The layout is that of the LMDB in
 * lmdb 3.5 (mdb.c, MDB_page_header, MDB_node, MDB_db, MDB_meta), little-endian, 64 bits.
 *
 * page number u64, transaction u64, u16, flags u16, then lower u16 and upper u16, or count of overflow pages
 * u32 meta at 24: magic u32, version u32, u64, map size u64, tree of free pages, main tree, last page u64,
 * transaction u64 tree page size or 0 u32, flags u16, depth u16, branch, leaf and overflow pages u64, entries
 * u64, root u64 node low u16, high u16, flags u16, key length u16, key, value; offsets of the nodes, from 24
 * on, follow the header overflow instead of a value: page u64, transaction u64, pages u64
 */

const HEADER_BYTES = 24
const META_BYTES = 168
const META_PAGES = 2
const MAGIC = 0xbeefc0de
const VERSION = 2
const TREE_BYTES = 48
const NO_ROOT = 0xffff_ffff_ffff_ffffn
const BRANCH = 1
const LEAF = 2
const OVERFLOW = 4
const BIG_DATA = 1
const SUB_TREE = 2
const NODE_HEADER_BYTES = 8
const OVERFLOW_NODE_BYTES = 24
const PAGE_BYTES_MAX = 65_536

export interface PageUse {
  kind: 'branch' | 'leaf' | 'overflow'
  /** Empty for the table of tables, `free` for the list of free pages. */
  table: string
}

export interface Visitor {
  page?(pageNo: number, use: PageUse): void
  /** Called for each table except the list of free pages. @returns whether the name is known */
  table?(name: string): boolean
  /** Called for each row. @returns whether it is valid */
  row?(table: string, key: Buffer, value: Buffer): boolean
}

/** Thrown for a damaged file. */
class Damage extends Error {}

interface Tree {
  depth: number
  branchPages: number
  leafPages: number
  overflowPages: number
  entries: number
  root: bigint
}

interface Meta {
  pageBytes: number
  free: Tree
  main: Tree
  lastPage: number
  transaction: bigint
}

/**
 * Checks the first two pages and the length of a data file that no other process writes. Only a file that is
 * too short is read further: it is valid if it ends in free pages.
 * @returns the fault, or undefined
 */
export function beginningFault(path: string): string | undefined {
  return faultIn(path, (file) => {
    if (file.bytes < (file.meta.lastPage + 1) * file.meta.pageBytes) new TreeWalk(file).all()
  })
}

/**
 * Checks all pages of a data file that no other process writes: each page is at its position, in order and
 * used once, and the counts of the trees are right. The visitor judges the contents of rows.
 * @returns the fault, or undefined
 */
export function structureFault(path: string, visitor: Visitor = {}): string | undefined {
  return faultIn(path, (file) => new TreeWalk(file, visitor).all())
}

interface DataFile {
  meta: Meta
  bytes: number
  read(at: number, length: number): Buffer
}

function faultIn(path: string, look: (file: DataFile) => void): string | undefined {
  const fd = openSync(path, 'r')
  try {
    const bytes = fstatSync(fd).size
    const read = (at: number, length: number): Buffer => {
      check(at + length <= bytes, `the file ends before byte ${at + length}`)
      const target = Buffer.alloc(length)
      readSync(fd, target, 0, length, at)
      return target
    }
    look({ meta: readMetas(read), bytes, read })
    return undefined
  } catch (error) {
    if (error instanceof Damage) return error.message
    throw error
  } finally {
    closeSync(fd)
  }
}

function check(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Damage(otherwise)
}

/** Returns the meta page of the last transaction. There are two, and the first one contains the page size. */
function readMetas(read: DataFile['read']): Meta {
  const first = readMeta(read(0, META_BYTES), 0)
  const second = readMeta(read(first.pageBytes, META_BYTES), 1)
  check(first.pageBytes === second.pageBytes, 'the meta pages disagree on the page size')
  // Transactions alternate between the two, so their numbers show which is the last.
  const [even, odd] = [first.transaction, second.transaction]
  const isValidPair = even % 2n === 0n && (odd % 2n === 1n || odd === 0n) && (odd - even) ** 2n <= 1n
  check(isValidPair, `the meta pages have the transactions ${even} and ${odd}`)
  return second.transaction > first.transaction ? second : first
}

function readMeta(page: Buffer, number: number): Meta {
  const valid = page.readUInt32LE(24) === MAGIC && page.readUInt32LE(28) === VERSION
  check(valid, `page ${number} is not the beginning of a data file`)
  const pageBytes = page.readUInt32LE(48)
  check(
    pageBytes >= 512 && pageBytes <= PAGE_BYTES_MAX && (pageBytes & (pageBytes - 1)) === 0,
    `page ${number} has a page size of ${pageBytes}`,
  )
  const lastPage = page.readBigUInt64LE(144)
  check(lastPage < 2n ** 40n, `page ${number} has a page count of ${lastPage}`)
  return {
    pageBytes,
    free: readTree(page, 48),
    main: readTree(page, 96),
    lastPage: Number(lastPage),
    transaction: page.readBigUInt64LE(152),
  }
}

function readTree(bytes: Buffer, at: number): Tree {
  return {
    depth: bytes.readUInt16LE(at + 6),
    branchPages: Number(bytes.readBigUInt64LE(at + 8)),
    leafPages: Number(bytes.readBigUInt64LE(at + 16)),
    overflowPages: Number(bytes.readBigUInt64LE(at + 24)),
    entries: Number(bytes.readBigUInt64LE(at + 32)),
    root: bytes.readBigUInt64LE(at + 40),
  }
}

/** The key range of a subtree: from `low`, below `high`. */
interface KeyBounds {
  low?: Buffer | undefined
  high?: Buffer | undefined
}

interface Walked {
  table: string
  compare(a: Buffer, b: Buffer): number
  tree: Tree
  found: Omit<Tree, 'root' | 'depth'>
  /** Collects the values of its rows, if present. */
  values?: Buffer[] | undefined
}

class TreeWalk {
  readonly #file: DataFile
  readonly #visitor: Visitor
  readonly #used: Uint8Array

  constructor(file: DataFile, visitor: Visitor = {}) {
    this.#file = file
    this.#visitor = visitor
    this.#used = new Uint8Array(file.meta.lastPage + 1).fill(1, 0, META_PAGES)
  }

  all(): void {
    const { meta } = this.#file
    this.#tree('', meta.main)
    const free: Buffer[] = []
    this.#tree('free', meta.free, free)
    for (const list of free) this.#useFree(list)
  }

  #tree(table: string, tree: Tree, values?: Buffer[]): void {
    const found = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 }
    const compare = table === 'free' ? compareNumbers : Buffer.compare
    const walked = { table, compare, tree, found, values }
    if (tree.root !== NO_ROOT) this.#page(walked, { pageNo: Number(tree.root), level: 1 }, {})
    for (const [name, count] of Object.entries(found)) {
      const counted = Object.entries(tree).find(([other]) => other === name)?.[1]
      check(counted === count, `table "${table}" counts ${counted} in ${name}, and has ${count}`)
    }
  }

  #page(walked: Walked, { pageNo, level }: { pageNo: number; level: number }, bounds: KeyBounds): void {
    const { table, tree, found } = walked
    const page = this.#take(pageNo, 1)
    const leaf = level === tree.depth
    const where = `page ${pageNo} of table "${table}"`
    check(page.readUInt16LE(18) === (leaf ? LEAF : BRANCH), `${where} is of another kind`)
    this.#visitor.page?.(pageNo, { kind: leaf ? 'leaf' : 'branch', table })
    if (leaf) found.leafPages++
    else found.branchPages++
    const nodes = nodesOf(page, where)
    check(nodes.length > 0, `${where} is empty`)
    for (const [index, node] of nodes.entries()) {
      // The first key of a branch page is not stored: it is the key in the parent page.
      const low = leaf || index > 0 ? node.key : bounds.low
      const high = nodes[index + 1]?.key ?? bounds.high
      check(inOrder(walked, bounds, low) && !isBehind(walked, low, high), `${where} is out of order`)
      if (leaf) this.#row(walked, node, where)
      else this.#page(walked, { pageNo: node.low + node.flags * 2 ** 32, level: level + 1 }, { low, high })
    }
  }

  #row(walked: Walked, node: Node, where: string): void {
    const { table, found } = walked
    found.entries++
    check((node.flags & ~(BIG_DATA | SUB_TREE)) === 0, `${where} has a row of unknown form`)
    check(((node.flags & SUB_TREE) !== 0) === (table === ''), `${where} has a row of another form`)
    if (table === '') {
      check(node.value.length === TREE_BYTES, `${where} has a damaged table`)
      // Names end in a NUL.
      const name = node.key.toString().replace('\0', '')
      check(this.#visitor.table?.(name) !== false, `${where} has a table of an unknown name, "${name}"`)
      this.#tree(name, readTree(node.value, 0))
      return
    }
    const value = (node.flags & BIG_DATA) === 0 ? node.value : this.#overflow(walked, node, where)
    walked.values?.push(value)
    if (table === 'free' || this.#visitor.row === undefined) return
    check(this.#visitor.row(table, node.key, value), `${where} has a damaged row`)
  }

  /** Reads a value from overflow pages. */
  #overflow({ table, found }: Walked, node: Node, where: string): Buffer {
    const pageNo = Number(node.value.readBigUInt64LE(0))
    const pages = Math.floor((HEADER_BYTES - 1 + node.low) / this.#file.meta.pageBytes) + 1
    check(Number(node.value.readBigUInt64LE(16)) === pages, `${where} has a row of another length`)
    const value = this.#take(pageNo, pages)
    const whole = value.readUInt16LE(18) === OVERFLOW && value.readUInt32LE(20) === pages
    check(whole, `page ${pageNo} of table "${table}" is of another kind`)
    for (let page = pageNo; page < pageNo + pages; page++)
      this.#visitor.page?.(page, { kind: 'overflow', table })
    found.overflowPages += pages
    return value.subarray(HEADER_BYTES, HEADER_BYTES + node.low)
  }

  /** Reads pages that must not be used elsewhere. */
  #take(pageNo: number, pages: number): Buffer {
    const { meta } = this.#file
    this.#use(pageNo, pages)
    const page = this.#file.read(pageNo * meta.pageBytes, pages * meta.pageBytes)
    check(page.readBigUInt64LE(0) === BigInt(pageNo), `page ${pageNo} has another page number`)
    check(page.readBigUInt64LE(8) <= meta.transaction, `page ${pageNo} is of a later transaction`)
    return page
  }

  #use(pageNo: number, pages: number): void {
    const { lastPage } = this.#file.meta
    check(pageNo >= META_PAGES && pageNo + pages - 1 <= lastPage, `page ${pageNo} is beyond the last one`)
    for (let page = pageNo; page < pageNo + pages; page++) {
      check(this.#used[page] === 0, `page ${page} is used twice`)
      this.#used[page] = 1
    }
  }

  /**
   * A list of free pages: a count, then per entry a page number, 0, or a negative count and its first page.
   */
  #useFree(list: Buffer): void {
    const count = list.length < 8 ? -1 : Number(list.readBigUInt64LE(0))
    check(count >= 0 && (count + 1) * 8 <= list.length, 'a list of free pages is damaged')
    for (let index = 1; index <= count; index++) {
      const entry = Number(list.readBigInt64LE(index * 8))
      if (entry > 0) this.#use(entry, 1)
      else if (entry < 0) {
        index++
        check(index <= count, 'a list of free pages is damaged')
        this.#use(Number(list.readBigInt64LE(index * 8)), -entry)
      }
    }
  }
}

interface Node {
  /** The length of the value, or the lower half of a page number. */
  low: number
  flags: number
  key: Buffer
  /** Empty in a branch page. */
  value: Buffer
}

function nodesOf(page: Buffer, where: string): Node[] {
  const [lower, upper] = [page.readUInt16LE(20), page.readUInt16LE(22)]
  const [end, begin] = [HEADER_BYTES + lower, HEADER_BYTES + upper]
  check(lower % 2 === 0 && end <= begin && begin <= page.length, `${where} has a damaged header`)
  const nodes: Node[] = []
  let bytes = 0
  for (let at = HEADER_BYTES; at < end; at += 2) {
    const from = page.readUInt16LE(at) + HEADER_BYTES
    check(from >= begin && from + NODE_HEADER_BYTES <= page.length, `${where} has a row beyond its end`)
    const node = nodeAt(page, from, where)
    nodes.push(node)
    bytes += Math.ceil((NODE_HEADER_BYTES + node.key.length + node.value.length) / 2) * 2
  }
  // Rows are contiguous.
  check(bytes === page.length - begin, `${where} has rows that overlap`)
  return nodes
}

function nodeAt(page: Buffer, from: number, where: string): Node {
  const low = page.readUInt16LE(from) + page.readUInt16LE(from + 2) * 65_536
  const flags = page.readUInt16LE(from + 4)
  const keyEnd = from + NODE_HEADER_BYTES + page.readUInt16LE(from + 6)
  const inLeaf = page.readUInt16LE(18) === LEAF
  const valueBytes = inLeaf ? ((flags & BIG_DATA) === 0 ? low : OVERFLOW_NODE_BYTES) : 0
  check(keyEnd + valueBytes <= page.length, `${where} has a row beyond its end`)
  const key = page.subarray(from + NODE_HEADER_BYTES, keyEnd)
  return { low, flags, key, value: page.subarray(keyEnd, keyEnd + valueBytes) }
}

/** Whether `key` is at or after the lower bound and before the upper one. */
function inOrder({ compare }: Walked, { low, high }: KeyBounds, key: Buffer | undefined): boolean {
  if (key === undefined) return true
  return (low === undefined || compare(key, low) >= 0) && (high === undefined || compare(key, high) < 0)
}

function isBehind({ compare }: Walked, key: Buffer | undefined, next: Buffer | undefined): boolean {
  return key !== undefined && next !== undefined && compare(key, next) >= 0
}

/** Keys of the list of free pages are numbers, little-endian. */
function compareNumbers(a: Buffer, b: Buffer): number {
  check(a.length === 8 && b.length === 8, 'a list of free pages is damaged')
  return Math.sign(Number(a.readBigUInt64LE(0) - b.readBigUInt64LE(0)))
}
