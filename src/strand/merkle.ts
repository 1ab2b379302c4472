import { hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** Every eighth level is cached: a cached node covers 256, 65,536, … leaves. */
export const cachedLevels = 8

/**
 * Reads the leaves of a tree: the hash of a record is its leaf hash. Complete subtrees never change and can
 * be cached.
 */
export interface LeafReader {
  /** Leaf hashes from `start` up to but not including `end`: 32 bytes each, at most 256 in one call. */
  leaves(start: number, end: number): Uint8Array[]
  /**
   * The cached root of the complete subtree of 2^level leaves that begins at leaf index * 2^level. Only
   * called for levels 8, 16, 24, …
   */
  subtree?(level: number, index: number): Uint8Array | undefined
  /** Caches the root of such a subtree. */
  cache?(level: number, index: number, root: Uint8Array): void
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

/**
 * The root of the first `size` leaves (RFC 6962, 2.1). The root of no leaves is the hash of the empty string.
 */
export function treeRoot(size: number, reader: LeafReader): Uint8Array {
  return size === 0 ? hash('sha256', '', 'buffer') : rangeRoot(0, size, reader)
}

/** The inclusion proof of leaf `index` in the first `size` leaves (RFC 6962, 2.1.1). */
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

/**
 * The consistency proof of the first `from` leaves and the first `to` leaves (RFC 6962, 2.1.2); empty if they
 * are equal.
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
  // A subtree that begins at the first leaf is the older tree, whose root the verifier has.
  if (start > 0) path.push(rangeRoot(start, end, reader))
  return path.reverse()
}

const HASH_BYTES = 32
/** Peaks are the roots of the complete subtrees. A size has 53 bits. */
const PEAKS_MAX = 53

/** Computes a tree root incrementally, in memory for log2(size) hashes. */
export class TreeHasher {
  /** The peaks, adjacent, so that two of them can be hashed as one node. */
  readonly #peaks = Buffer.alloc(PEAKS_MAX * HASH_BYTES)
  #count = 0
  #size = 0

  /** Leaves of the tree so far. */
  get size(): number {
    return this.#size
  }

  /** Adds the next leaf hash, 32 bytes. */
  append(leaf: Uint8Array): void {
    this.#peaks.set(leaf, this.#count * HASH_BYTES)
    // Each trailing one bit is a complete subtree, which the new leaf's subtree of the same size joins.
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      this.#count -= 1
      const at = this.#count * HASH_BYTES
      this.#peaks.copy(node, 1, at, at + 2 * HASH_BYTES)
      // The platform returns a hash faster as a binary string than as a buffer.
      this.#peaks.write(hash('sha256', node, 'binary'), at, 'latin1')
    }
    this.#count += 1
    this.#size += 1
  }

  /** The root of the leaves so far. */
  root(): Uint8Array {
    if (this.#size === 0) return hash('sha256', '', 'buffer')
    const peaks = Array.from({ length: this.#count }, (_none, at): Uint8Array =>
      this.#peaks.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
    )
    return Buffer.from(peaks.reduceRight((right, left) => nodeHash(left, right)))
  }
}

function rangeRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const size = end - start
  const level = Math.round(Math.log2(size))
  const isCached = 2 ** level === size && level > 0 && level % cachedLevels === 0 && start % size === 0
  const known = isCached ? reader.subtree?.(level, start / size) : undefined
  if (known !== undefined) return known
  const root =
    size <= 2 ** cachedLevels ? foldLeaves(reader.leaves(start, end), size) : splitRoot(start, end, reader)
  if (isCached) reader.cache?.(level, start / size, root)
  return root
}

function splitRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const middle = start + largestPowerBelow(end - start)
  return nodeHash(rangeRoot(start, middle, reader), rangeRoot(middle, end, reader))
}

function foldLeaves(leaves: Uint8Array[], size: number): Uint8Array {
  assert(leaves.length === size, 'the reader returns every leaf of the range')
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
