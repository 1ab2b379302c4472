import { type Check, hashOf, hex, nodeOf } from './job.js'

/** The root of a complete subtree of 2^level leaves. */
export interface Subtree {
  level: number
  /** 64 hex digits. */
  rootHex: string
}

/**
 * Computes a tree root incrementally (RFC 6962, 2.1), in memory for log2(size) hashes. The hash of a record
 * is its leaf hash. Ranges of a long tree can be hashed independently: a hasher that starts at a later leaf
 * returns the subtrees of its range, which are then joined to the hasher of the earlier leaves.
 */
export class TreeHasher {
  readonly #peaks: Subtree[] = []
  readonly #start: number
  #size: number

  /** @param start index of the first leaf */
  constructor(start = 0) {
    this.#start = start
    this.#size = start
  }

  /** Leaves of the tree so far, including those before `start`. */
  get size(): number {
    return this.#size
  }

  /** Adds the next leaf (level 0) or subtree, which must begin at a multiple of its size. */
  *join({ level: from, rootHex }: Subtree): Check<void> {
    let level = from
    let root = rootHex
    let rest = this.#size / 2 ** level
    if (!Number.isInteger(rest))
      throw new RangeError('Expected a subtree that begins at a multiple of its size')
    // Each trailing one bit is a complete subtree, which the new subtree of the same size joins, unless the
    // former begins before `start`.
    for (; rest % 2 === 1; rest = (rest - 1) / 2) {
      const left = this.#peaks.at(-1)
      if (left?.level !== level) break
      this.#peaks.pop()
      root = hex(yield { kind: 'node', left: left.rootHex, right: root })
      level += 1
    }
    this.#peaks.push({ level, rootHex: root })
    this.#size += 2 ** from
  }

  /** The complete subtrees of the leaves so far, from left to right. */
  subtrees(): Subtree[] {
    return [...this.#peaks]
  }

  /** The root of the leaves so far, 64 hex digits. */
  *root(): Check<string> {
    if (this.#start !== 0) throw new RangeError('Expected a tree from its first leaf on')
    const [last, ...before] = this.#peaks.toReversed()
    if (last === undefined) return yield* hashOf(new Uint8Array())
    let root = last.rootHex
    for (const { rootHex } of before) root = yield* nodeOf(rootHex, root)
    return root
  }
}
