import { hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** Levels between two kept ones: a kept node stands for 256, 65,536, … leaves. */
export const keptLevels = 8

/**
 * Reads the leaves of a tree. A record's hash is its leaf hash already and is used as it is.
 * Complete subtrees never change in an append-only tree, so `subtree` may answer from a cache.
 */
export interface LeafReader {
  /** Leaf hashes from `start` up to, without, `end`: 32 bytes each. Asked for at most 256 at once. */
  leaves(start: number, end: number): Uint8Array[]
  /**
   * The root, if known, of the complete subtree of 2^level leaves that begins at leaf index * 2^level.
   * Asked for levels 8, 16, 24, … only.
   */
  subtree?(level: number, index: number): Uint8Array | undefined
  /** Told each root of such a subtree that had to be worked out, to keep it. */
  keep?(level: number, index: number, root: Uint8Array): void
}

/** What `inclusionPath` proves: the leaf at `index` of the tree of `size` leaves with this root. */
export interface Inclusion {
  index: number
  size: number
  leaf: Uint8Array
  /** Sibling hashes from the leaf up. */
  path: Uint8Array[]
  root: Uint8Array
}

/** What `consistencyPath` proves: the tree of `to` leaves begins with the tree of `from` leaves. */
export interface Consistency {
  from: number
  to: number
  fromRoot: Uint8Array
  toRoot: Uint8Array
  path: Uint8Array[]
}

const node = Buffer.alloc(65)
node[0] = 1

/** SHA-256(0x01 ‖ left ‖ right) (RFC 6962, 2.1). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  assert(left.length === 32 && right.length === 32, 'a tree hash has 32 bytes')
  node.set(left, 1)
  node.set(right, 33)
  return hash('sha256', node, 'buffer')
}

/** The root of the first `size` leaves (RFC 6962, 2.1). That of no leaf is the hash of nothing. */
export function treeRoot(size: number, reader: LeafReader): Uint8Array {
  return size === 0 ? hash('sha256', '', 'buffer') : rangeRoot(0, size, reader)
}

/** The hashes that lead from leaf `index` to the root of the first `size` leaves (RFC 6962, 2.1.1). */
export function inclusionPath(index: number, size: number, reader: LeafReader): Uint8Array[] {
  assert(index >= 0 && index < size, 'a proven leaf is within the tree')
  const path: Uint8Array[] = []
  let start = 0
  let end = size
  while (end - start > 1) {
    const middle = start + largestPowerBelow(end - start)
    if (index < middle) {
      path.push(rangeRoot(middle, end, reader))
      end = middle
    } else {
      path.push(rangeRoot(start, middle, reader))
      start = middle
    }
  }
  return path.reverse()
}

/** Checks an inclusion proof (RFC 9162, 2.1.3.2). */
export function verifyInclusion(inclusion: Inclusion): boolean {
  const { index, size, leaf, path, root } = inclusion
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return false
  if (leaf.length !== 32 || path.some((sibling) => sibling.length !== 32)) return false
  // Divisions, not shifts: a shift would cut a size past 2^31.
  let at = index
  let last = size - 1
  let reached = leaf
  for (const sibling of path) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      reached = nodeHash(sibling, reached)
      while (at % 2 === 0 && at !== 0) {
        at /= 2
        last = Math.floor(last / 2)
      }
    } else reached = nodeHash(reached, sibling)
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && Buffer.compare(reached, root) === 0
}

/**
 * The hashes that lead from the root of the first `from` leaves to that of the first `to` leaves (RFC 6962, 2.1.2);
 * none where both are one tree.
 */
export function consistencyPath(from: number, to: number, reader: LeafReader): Uint8Array[] {
  assert(from > 0 && from <= to, 'the older tree has leaves and is within the newer one')
  const path: Uint8Array[] = []
  let start = 0
  let end = to
  while (end !== from) {
    const middle = start + largestPowerBelow(end - start)
    if (from <= middle) {
      path.push(rangeRoot(middle, end, reader))
      end = middle
    } else {
      path.push(rangeRoot(start, middle, reader))
      start = middle
    }
  }
  // A subtree that begins at the first leaf is the older tree itself, whose root the verifier has.
  if (start > 0) path.push(rangeRoot(start, end, reader))
  return path.reverse()
}

/** Checks a consistency proof (RFC 9162, 2.1.4.2). */
export function verifyConsistency({ from, to, fromRoot, toRoot, path }: Consistency): boolean {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 1 || from > to) return false
  if ([fromRoot, toRoot, ...path].some((hash) => hash.length !== 32)) return false
  if (from === to) return path.length === 0 && Buffer.compare(fromRoot, toRoot) === 0
  let at = from - 1
  let last = to - 1
  while (at % 2 === 1) {
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  // At 0 the older tree is a complete one, which the path leaves out.
  const [first, ...rest] = at === 0 ? [fromRoot, ...path] : path
  if (first === undefined) return false
  let older = first
  let newer = first
  for (const sibling of rest) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      older = nodeHash(sibling, older)
      newer = nodeHash(sibling, newer)
      while (at % 2 === 0 && at !== 0) {
        at /= 2
        last = Math.floor(last / 2)
      }
    } else newer = nodeHash(newer, sibling)
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 && Buffer.compare(older, fromRoot) === 0 && Buffer.compare(newer, toRoot) === 0
}

/** A complete subtree: 2^level leaves under one root. */
export interface Subtree {
  level: number
  /** 64 hex digits. */
  rootHex: string
}

const HASH_BYTES = 32
/** Peaks at most: those of a range that begins anywhere rise and fall once, and a size has 53 bits. */
const PEAKS_MAX = 2 * 53

/**
 * Takes leaf after leaf and keeps only the roots of the complete subtrees: log2(size) hashes.
 *
 * One that begins at a later leaf keeps the subtrees of its range; joined to the one of the leaves before, they give
 * the tree of all. So ranges of a long tree can be hashed apart from each other.
 */
export class TreeHasher {
  /** The peaks' roots one behind the other: two that are joined lie together. */
  readonly #peaks = Buffer.alloc(PEAKS_MAX * HASH_BYTES)
  readonly #levels: number[] = []
  readonly #start: number
  #size: number

  /** @param start index of the first leaf that it will take */
  constructor(start = 0) {
    this.#start = start
    this.#size = start
  }

  /** Leaves of the tree so far, those before its start counted. */
  get size(): number {
    return this.#size
  }

  /** Takes the next leaf hash, 32 bytes. */
  append(leaf: Uint8Array): void {
    this.#peaks.set(leaf, this.#levels.length * HASH_BYTES)
    this.#merge(0)
  }

  /** Takes what comes next, a leaf (level 0) or a subtree that begins at a multiple of its size. */
  join({ level, rootHex }: Subtree): void {
    this.#peaks.write(rootHex, this.#levels.length * HASH_BYTES, 'hex')
    this.#merge(level)
  }

  /** The subtrees that the leaves taken make, from left to right. */
  subtrees(): Subtree[] {
    return this.#levels.map((level, at) => ({ level, rootHex: this.#peak(at).toString('hex') }))
  }

  /** The root of the leaves taken so far. */
  root(): Uint8Array {
    assert(this.#start === 0, 'only a tree from its first leaf on has a root')
    if (this.#size === 0) return hash('sha256', '', 'buffer')
    const peaks = this.#levels.map((_level, at): Uint8Array => this.#peak(at))
    return Buffer.from(peaks.reduceRight((right, left) => nodeHash(left, right)))
  }

  #peak(at: number): Buffer {
    return this.#peaks.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES)
  }

  /** Joins the root that was laid behind the peaks with those it completes a larger subtree with. */
  #merge(from: number): void {
    let level = from
    let rest = this.#size / 2 ** level
    assert(Number.isInteger(rest), 'a subtree begins at a multiple of its size')
    // Each trailing one bit is a complete subtree as large as what has become of the new one, unless it began before.
    for (; rest % 2 === 1 && this.#levels.at(-1) === level; rest = (rest - 1) / 2) {
      this.#levels.pop()
      const at = this.#levels.length * HASH_BYTES
      this.#peaks.copy(node, 1, at, at + 2 * HASH_BYTES)
      // One byte a character: the platform gives a hash faster so than in a buffer.
      this.#peaks.write(hash('sha256', node, 'binary'), at, 'latin1')
      level += 1
    }
    this.#levels.push(level)
    this.#size += 2 ** from
  }
}

function rangeRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const size = end - start
  const level = Math.round(Math.log2(size))
  const kept = 2 ** level === size && level > 0 && level % keptLevels === 0 && start % size === 0
  const known = kept ? reader.subtree?.(level, start / size) : undefined
  if (known !== undefined) return known
  const root =
    size <= 2 ** keptLevels ? foldLeaves(reader.leaves(start, end), size) : splitRoot(start, end, reader)
  if (kept) reader.keep?.(level, start / size, root)
  return root
}

function splitRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const middle = start + largestPowerBelow(end - start)
  return nodeHash(rangeRoot(start, middle, reader), rangeRoot(middle, end, reader))
}

function foldLeaves(leaves: Uint8Array[], size: number): Uint8Array {
  assert(leaves.length === size, 'the reader gives every leaf of the range')
  const hasher = new TreeHasher()
  for (const leaf of leaves) hasher.append(leaf)
  return hasher.root()
}

/** The largest power of two that is less than `size`, for size > 1. */
function largestPowerBelow(size: number): number {
  let power = 1
  while (power * 2 < size) power *= 2
  return power
}
