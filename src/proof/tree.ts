import { type Check, hashOf, hex, nodeOf } from './job.js'

/** A complete subtree: 2^level leaves under one root. */
export interface Subtree {
  level: number
  /** 64 hex digits. */
  rootHex: string
}

/**
 * Takes one leaf after another and keeps only the roots of the complete subtrees: log2(size) hashes (RFC 6962, 2.1). A
 * record's hash is its leaf hash.
 *
 * A hasher that begins at a later leaf keeps the subtrees of its range; joined to the one of the leaves before, they
 * give the whole tree. So ranges of a long tree can be hashed independently.
 */
export class TreeHasher {
  readonly #peaks: Subtree[] = []
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

  /** Takes the next leaf (level 0), or the next subtree, which begins at a multiple of its size. */
  *join({ level: from, rootHex }: Subtree): Check<void> {
    let level = from
    let root = rootHex
    let rest = this.#size / 2 ** level
    if (!Number.isInteger(rest))
      throw new RangeError('Expected a subtree that begins at a multiple of its size')
    // Each trailing one bit is a complete subtree, as large as the one that the new leaf is part of now, unless it
    // began before.
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

  /** The root of the leaves taken so far, 64 hex digits. */
  *root(): Check<string> {
    if (this.#start !== 0) throw new RangeError('Expected a tree from its first leaf on')
    const [last, ...before] = this.#peaks.toReversed()
    if (last === undefined) return yield* hashOf(new Uint8Array())
    let root = last.rootHex
    for (const { rootHex } of before) root = yield* nodeOf(rootHex, root)
    return root
  }
}
