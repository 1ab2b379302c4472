import { isHex } from './hex.js'
import { type Check, nodeOf } from './job.js'

/** A claim that a tree has a leaf at an index. Hashes are 64 hex digits. */
export interface Inclusion {
  index: number
  size: number
  leaf: string
  /** Sibling hashes from the leaf up. */
  path: readonly string[]
  rootHex: string
}

/** A claim that one tree is a prefix of another. */
export interface Consistency {
  from: number
  to: number
  fromRootHex: string
  toRootHex: string
  path: readonly string[]
}

/** The hashes of a path in an answer; undefined unless all are hashes. */
export function pathOf(path: unknown): string[] | undefined {
  if (!Array.isArray(path)) return undefined
  const hashes = path.map((hash: unknown) => (isHex(hash, 64) ? hash : undefined))
  return hashes.every((hash) => hash !== undefined) ? hashes : undefined
}

/** Checks an inclusion proof (RFC 9162, 2.1.3.2). */
export function* leadsToRoot({ index, size, leaf, path, rootHex }: Inclusion): Check<boolean> {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return false
  if (pathOf([leaf, ...path]) === undefined) return false
  const climb = new Climb(index, size - 1)
  let reached = leaf
  for (const sibling of path) {
    const side = climb.next()
    if (side === undefined) return false
    reached = side === 'left' ? yield* nodeOf(sibling, reached) : yield* nodeOf(reached, sibling)
  }
  return climb.atRoot && reached === rootHex
}

/** Checks a consistency proof (RFC 9162, 2.1.4.2). */
export function* growsFrom({ from, to, fromRootHex, toRootHex, path }: Consistency): Check<boolean> {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 1 || from > to) return false
  if (pathOf([fromRootHex, toRootHex, ...path]) === undefined) return false
  if (from === to) return path.length === 0 && fromRootHex === toRootHex
  const climb = new Climb(from - 1, to - 1)
  climb.skipRightNodes()
  // If the older tree is complete, its root is the first hash and not part of the path.
  const [first, ...rest] = climb.at === 0 ? [fromRootHex, ...path] : path
  if (first === undefined) return false
  let older = first
  let newer = first
  for (const sibling of rest) {
    const side = climb.next()
    if (side === undefined) return false
    if (side === 'left') {
      older = yield* nodeOf(sibling, older)
      newer = yield* nodeOf(sibling, newer)
    } else newer = yield* nodeOf(newer, sibling)
  }
  return climb.atRoot && older === fromRootHex && newer === toRootHex
}

/** The path from a node up to the root, as the index of the node and of the last node at the same height. */
class Climb {
  at: number
  #last: number

  constructor(at: number, last: number) {
    this.at = at
    this.#last = last
  }

  get atRoot(): boolean {
    return this.#last === 0
  }

  /** Moves up. @returns the side of the sibling; undefined at the root */
  next(): 'left' | 'right' | undefined {
    if (this.#last === 0) return undefined
    const isLeft = this.at % 2 === 1 || this.at === this.#last
    // The last node at a height has no sibling if it is a left child, and moves up unchanged.
    if (isLeft) while (this.at % 2 === 0 && this.at !== 0) this.#up()
    this.#up()
    return isLeft ? 'left' : 'right'
  }

  /** Moves up while the node is a right child. */
  skipRightNodes(): void {
    while (this.at % 2 === 1) this.#up()
  }

  // Divisions, because a shift would truncate a size above 2^31.
  #up(): void {
    this.at = Math.floor(this.at / 2)
    this.#last = Math.floor(this.#last / 2)
  }
}
