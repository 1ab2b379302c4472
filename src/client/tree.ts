import { type Bytes, sha256 } from './webcrypto.js'

const NODE = Uint8Array.of(1)

/** Root of a growing Merkle tree (RFC 6962, 2.1); keeps the roots of complete subtrees only, log2(size) hashes. */
export class TreeHasher {
  readonly #peaks: Bytes[] = []
  #size = 0

  /** Takes the next leaf hash, 32 bytes. A record's hash is its leaf hash. */
  async append(leaf: Bytes): Promise<void> {
    let root = leaf
    // Each trailing one bit of the size is a complete subtree as large as what `root` has become.
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      const left = this.#peaks.pop()
      if (left === undefined) throw new Error('A tree has a peak for each bit of its size')
      root = await sha256(NODE, left, root)
    }
    this.#peaks.push(root)
    this.#size += 1
  }

  /** The root of the leaves taken so far, at least one. */
  async root(): Promise<Bytes> {
    const [last, ...before] = this.#peaks.toReversed()
    let root = last ?? new Uint8Array()
    for (const left of before) root = await sha256(NODE, left, root)
    return root
  }
}
