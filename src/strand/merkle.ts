import { hash } from 'node:crypto'
import { assert } from '../base/assert.js'

/** The root of a complete subtree is stored at each eighth level: it covers 256, 65,536, … leaves. */
export const storedLevels = 8

/**
 * Reads the leaves of a tree: the hash of a record is its leaf hash. Complete subtrees never change and can
 * be stored.
 */
export interface LeafReader {
  /** Leaf hashes from `start` up to but not including `end`: 32 bytes each, at most 256 in one call. */
  leaves(start: number, end: number): Uint8Array[]
  /**
   * The stored root of the complete subtree of 2^level leaves that begins at leaf index * 2^level, if there is
   * one. Only called for levels 8, 16, 24, …
   */
  subtree?(level: number, index: number): Uint8Array | undefined
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
/** Offsets in `node`. */
const LEFT_AT = 1
const RIGHT_AT = 33
/** A size has 53 bits. */
const LEVEL_MAX = 53

/** Computes a tree root incrementally, in memory for log2(size) hashes. */
export class TreeHasher {
  /** The peaks, which are the roots of the complete subtrees, adjacent, so that two of them can be hashed as one node. */
  readonly #peaks: Buffer
  #count = 0
  #size = 0

  /** @param level the tree has at most 2^level leaves */
  constructor(level = LEVEL_MAX) {
    this.#peaks = Buffer.alloc((level + 1) * HASH_BYTES)
  }

  /** Leaves of the tree so far. */
  get size(): number {
    return this.#size
  }

  /** Adds the next leaf hash, the 32 bytes of `source` at `from`. */
  append(source: Uint8Array, from = 0): void {
    let rest = this.#size
    if (rest % 2 === 0) this.#addPeak(source, from)
    else intoNode(source, from, RIGHT_AT)
    // Each trailing one bit is a complete subtree, which the new leaf's subtree of the same size joins.
    while (rest % 2 === 1) {
      this.#count -= 1
      const at = this.#count * HASH_BYTES
      intoNode(this.#peaks, at, LEFT_AT)
      // The platform returns a hash faster as a binary string than as a buffer.
      const joined = hash('sha256', node, 'binary')
      rest = (rest - 1) / 2
      if (rest % 2 === 1) node.write(joined, RIGHT_AT, 'latin1')
      else this.#peaks.write(joined, at, 'latin1')
    }
    this.#count += 1
    this.#size += 1
  }

  #addPeak(source: Uint8Array, from: number): void {
    const at = this.#count * HASH_BYTES
    for (let byte = 0; byte < HASH_BYTES; byte++) this.#peaks[at + byte] = source[from + byte] ?? 0
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

/** Copies 32 bytes, faster than the platform does between parts of buffers. @param at offset in `node` */
function intoNode(source: Uint8Array, from: number, at: number): void {
  for (let byte = 0; byte < HASH_BYTES; byte++) node[at + byte] = source[from + byte] ?? 0
}

function rangeRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const size = end - start
  const level = Math.round(Math.log2(size))
  const isStored = 2 ** level === size && level > 0 && level % storedLevels === 0 && start % size === 0
  const known = isStored ? reader.subtree?.(level, start / size) : undefined
  if (known !== undefined) return known
  return size <= 2 ** storedLevels
    ? foldLeaves(reader.leaves(start, end), size)
    : splitRoot(start, end, reader)
}

function splitRoot(start: number, end: number, reader: LeafReader): Uint8Array {
  const middle = start + largestPowerBelow(end - start)
  return nodeHash(rangeRoot(start, middle, reader), rangeRoot(middle, end, reader))
}

/** The root of a tree of these leaves, at most 256. */
export function foldLeaves(leaves: readonly Uint8Array[], size = leaves.length): Uint8Array {
  assert(leaves.length === size, 'the reader returns every leaf of the range')
  const hasher = new TreeHasher(storedLevels)
  for (const leaf of leaves) hasher.append(leaf)
  return hasher.root()
}

/** The largest power of two that is less than `size`, for size > 1. */
function largestPowerBelow(size: number): number {
  let power = 1
  while (power * 2 < size) power *= 2
  return power
}
