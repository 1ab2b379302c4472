import { assert } from '../../../src/base/assert.js'
import { boundedCache } from '../../../src/base/bounded-cache.js'
import { foldLeaves, storedLevels, TreeHasher } from '../../../src/strand/merkle.js'
import type { SetAside } from '../set-aside.js'
import { CheckedTable, type Table } from './checked-table.js'
import { blockCount, isWhole, leafOf } from './record-codec.js'
import { blockKey, importedBlocksFrom, isImportedBlock } from './tables.js'

/** Nodes below a stored one that are stored themselves, or leaves. */
export const CHILDREN = 2 ** storedLevels
/** A step ends after about so many records; reading a block counts as two. It takes a few milliseconds. */
const STEP_RECORDS = 2_048
const BLOCK_RECORDS = 2
/** Strands whose unfinished subtrees are in memory, some 500 bytes each. */
const UNFINISHED_MAX = 32_768

/** The tables of blocks, each with the number before its first block. A strand begins with imported records. */
const tables = [
  ['importedBlocks', importedBlocksFrom - 1],
  ['blocks', -1],
] as const

type BlockTable = (typeof tables)[number][0]

/** The keys of the rows of `meta` with the last block of each table whose subtrees are stored. */
export const treesCoveredKeys = {
  importedBlocks: Buffer.from('trees-covered-imported-up-to'),
  blocks: Buffer.from('trees-covered-up-to'),
} as const

/** The hashes of a strand's records from `start` up to but not including `end`. @throws Error if one is damaged */
type HashesOf = (agentNo: number, range: { start: number; end: number }) => Uint8Array[]

/** A complete subtree of the lowest stored level. */
interface Finished {
  agentNo: number
  index: number
  /** Undefined if its first leaves were not in memory. */
  root: Uint8Array | undefined
}

/**
 * The roots of the complete subtrees of each strand's tree, so that a root or a proof needs few hashes, however
 * long the strand is. They are derived from the blocks, in their order: those of new blocks are computed with
 * the block, and written by the next flush; those of blocks from before, as of an earlier version, in steps.
 * Readers compute what is missing from the records.
 */
export class StrandTrees {
  readonly #blocks: Record<BlockTable, Table>
  readonly #hashesOf: HashesOf
  readonly #rows: CheckedTable
  readonly #meta: CheckedTable
  /** The first leaves of the last subtree of each strand, by agent number; the next leaf is at `size`. */
  readonly #unfinished = boundedCache<number, { tree: TreeHasher; from: number }>(UNFINISHED_MAX)
  /** Subtrees that are not in the table yet. */
  #finished: Finished[] = []
  /** The last block of each table that was added. */
  readonly #addedUpTo = new Map<BlockTable, number>()
  #isBehind = true

  constructor(tables: Record<BlockTable | 'subtrees', Table> & { meta: CheckedTable }, hashesOf: HashesOf) {
    this.#blocks = tables
    this.#hashesOf = hashesOf
    this.#rows = new CheckedTable(tables.subtrees)
    this.#meta = tables.meta
  }

  /** Whether there may be older blocks that were not added. */
  get needsStep(): boolean {
    return this.#isBehind
  }

  /** Whether the table has the subtrees of all blocks. */
  get isComplete(): boolean {
    return tables.every(([name, first]) => this.#writtenUpTo(name, first) === this.#lastBlock(name, first))
  }

  /** The root of the complete subtree of 2^level leaves that begins at leaf index * 2^level, if it is stored. */
  find(agentNo: number, level: number, index: number): Uint8Array | undefined {
    return this.#rows.ifWhole(rowKey(agentNo, level, index))
  }

  /** Adds a new block, unless earlier ones are missing: then a step adds it. */
  add(blockNo: number, block: Buffer): void {
    const name = isImportedBlock(blockNo) ? 'importedBlocks' : 'blocks'
    if (this.#addedUpTo.get(name) !== blockNo - 1) return
    this.#addRecords(block)
    this.#addedUpTo.set(name, blockNo)
  }

  /**
   * Adds the next blocks that are missing, and writes finished subtrees, within the caller's transaction.
   * @param setAside is given the damaged records, without which a subtree has no row
   */
  step(setAside: SetAside): void {
    const budget = { records: STEP_RECORDS }
    this.#isBehind = !tables.every(([name, first]) => this.#addMissing({ name, first, budget, setAside }))
    for (const subtree of this.#finished) {
      const { agentNo, index } = subtree
      orSetAside(setAside, `subtrees ${agentNo} ${index}`, () => this.#put(subtree))
    }
    this.#finished = []
    for (const [name, first] of tables) {
      // Absent while imported blocks are missing, which are added first.
      const upTo = this.#addedUpTo.get(name)
      if (upTo === undefined || upTo === this.#writtenUpTo(name, first)) continue
      this.#meta.put(treesCoveredKeys[name], blockKey(upTo))
    }
  }

  /** @returns whether all blocks of the table were added */
  #addMissing(step: {
    name: BlockTable
    first: number
    budget: { records: number }
    setAside: SetAside
  }): boolean {
    const { name, first, budget, setAside } = step
    const before = this.#addedUpTo.get(name) ?? this.#writtenUpTo(name, first)
    this.#addedUpTo.set(name, before)
    if (before === this.#lastBlock(name, first)) return true
    for (const { key, value } of this.#blocks[name].getRange({ start: blockKey(before + 1) })) {
      if (budget.records <= 0) return false
      const blockNo = key.readUIntBE(0, 6)
      orSetAside(setAside, `${name} ${blockNo}`, () => {
        assert(isWhole(value), `block ${blockNo} matches its checksums`)
        budget.records -= BLOCK_RECORDS + this.#addRecords(value)
      })
      this.#addedUpTo.set(name, blockNo)
    }
    return true
  }

  /** @returns the number of records in the block */
  #addRecords(block: Buffer): number {
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      const { agentNo, seq, at } = leafOf(block, position)
      const place = seq % CHILDREN
      if (place === 0) this.#unfinished.set(agentNo, { tree: new TreeHasher(storedLevels), from: seq })
      const { tree, from = 0 } = this.#unfinished.get(agentNo) ?? {}
      const follows = tree !== undefined && from + tree.size === seq
      if (follows) tree.append(block, at)
      if (place !== CHILDREN - 1) continue
      this.#unfinished.delete(agentNo)
      this.#finished.push({
        agentNo,
        index: (seq - place) / CHILDREN,
        root: follows ? tree.root() : undefined,
      })
    }
    return count
  }

  /** Stores a subtree, and those above it that it completes. */
  #put({ agentNo, index, root }: Finished): void {
    const start = index * CHILDREN
    const leaves = () => this.#hashesOf(agentNo, { start, end: start + CHILDREN })
    let [level, at, node] = [storedLevels, index, root ?? foldLeaves(leaves())]
    for (;;) {
      this.#rows.put(rowKey(agentNo, level, at), Buffer.from(node))
      if (at % CHILDREN !== CHILDREN - 1) return
      const first = at - CHILDREN + 1
      const below = Array.from({ length: CHILDREN }, (_none, child) =>
        this.find(agentNo, level, first + child),
      )
      const children = below.filter((child) => child !== undefined)
      if (children.length < CHILDREN) return
      level += storedLevels
      at = first / CHILDREN
      node = foldLeaves(children)
    }
  }

  /** The last block with subtrees in the table, else `first`. Each flush changes a page of `meta` anyway. */
  #writtenUpTo(name: BlockTable, first: number): number {
    return this.#meta.ifWhole(treesCoveredKeys[name])?.readUIntBE(0, 6) ?? first
  }

  #lastBlock(name: BlockTable, first: number): number {
    for (const key of this.#blocks[name].getKeys({ reverse: true, limit: 1 })) return key.readUIntBE(0, 6)
    return first
  }
}

/** Key of a subtree: agent number u32, level u8, index u48. */
function rowKey(agentNo: number, level: number, index: number): Buffer {
  const key = Buffer.allocUnsafe(11)
  key.writeUInt32BE(agentNo, 0)
  key.writeUInt8(level, 4)
  key.writeUIntBE(index, 5, 6)
  return key
}

function orSetAside(setAside: SetAside, row: string, body: () => void): void {
  try {
    body()
  } catch (error) {
    setAside.add(row, error)
  }
}
