import { type Bytes, sha256, toHex } from './webcrypto.js'

const NODE = Uint8Array.of(1)

/** Where a leaf is said to be in a tree. */
interface Inclusion {
  index: number
  size: number
  leaf: Bytes
  /** Sibling hashes from the leaf up. */
  path: Bytes[]
  rootHex: string
}

/** Two trees, of which one is said to be the beginning of the other. */
interface Consistency {
  from: number
  to: number
  fromRootHex: string
  toRootHex: string
  path: Bytes[]
}

/** Bytes of tree hashes as answers have them; undefined when one of them is none. */
export function hashesOf(path: unknown): Bytes[] | undefined {
  if (!Array.isArray(path)) return undefined
  const hashes = path.map((hash: unknown) => {
    const digits = typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? hash.match(/../g) : null
    return digits === null ? undefined : Uint8Array.from(digits, (byte) => Number.parseInt(byte, 16))
  })
  return hashes.every((hash) => hash !== undefined) ? hashes : undefined
}

/** Checks an inclusion proof (RFC 9162, 2.1.3.2). */
export async function leadsToRoot({ index, size, leaf, path, rootHex }: Inclusion): Promise<boolean> {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return false
  const climb = new Climb(index, size - 1)
  let reached = leaf
  for (const sibling of path) {
    const side = climb.next()
    if (side === undefined) return false
    reached = side === 'left' ? await sha256(NODE, sibling, reached) : await sha256(NODE, reached, sibling)
  }
  return climb.atRoot && toHex(reached) === rootHex
}

/** Checks a consistency proof (RFC 9162, 2.1.4.2). */
export async function growsFrom(proof: Consistency): Promise<boolean> {
  const { from, to, fromRootHex, toRootHex, path } = proof
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from < 1 || from > to) return false
  if (from === to) return path.length === 0 && fromRootHex === toRootHex
  const climb = new Climb(from - 1, to - 1)
  climb.skipRightNodes()
  // A complete older tree is the first hash itself, which the path leaves out.
  const [first, ...rest] = climb.at === 0 ? [...(hashesOf([fromRootHex]) ?? []), ...path] : path
  if (first === undefined) return false
  let older = first
  let newer = first
  for (const sibling of rest) {
    const side = climb.next()
    if (side === undefined) return false
    if (side === 'left') {
      older = await sha256(NODE, sibling, older)
      newer = await sha256(NODE, sibling, newer)
    } else newer = await sha256(NODE, newer, sibling)
  }
  return climb.atRoot && toHex(older) === fromRootHex && toHex(newer) === toRootHex
}

/** The way from a node up to the root of a tree, by the numbers of the node and of the last one of its height. */
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

  /** On which side of the node the next sibling stands; undefined at the root, which has none. */
  next(): 'left' | 'right' | undefined {
    if (this.#last === 0) return undefined
    const isLeft = this.at % 2 === 1 || this.at === this.#last
    // The last node of a height has no sibling there unless it is a right one: it goes up as it is.
    if (isLeft) while (this.at % 2 === 0 && this.at !== 0) this.#up()
    this.#up()
    return isLeft ? 'left' : 'right'
  }

  /** Goes up while the node is a right one. */
  skipRightNodes(): void {
    while (this.at % 2 === 1) this.#up()
  }

  // Divisions, not shifts: a shift would cut a size past 2^31.
  #up(): void {
    this.at = Math.floor(this.at / 2)
    this.#last = Math.floor(this.#last / 2)
  }
}
