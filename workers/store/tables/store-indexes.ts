import { assert } from '../../../src/base/assert.js'
import type { Environment } from '../environment.js'
import { SetAside } from '../set-aside.js'
import { HashIndex, prefixOf } from '../hash-index/hash-index.js'
import type { Table } from './checked-table.js'
import { indexHeads } from './logged-heads.js'
import { blockCount, hashAt, isWhole } from './record-codec.js'
import { blockKey, packLocation, unpackLocation } from './tables.js'

/** Records and blocks between two steps of the indexes. */
const STEP_RECORDS = 8_192
const STEP_BLOCKS = 512

/**
 * Updates the derived tables for any number of new blocks. A shard adds the rest when it opens its store, so
 * that rest must be small.
 * @param commit runs the given function in its own transaction
 */
export function indexStore(environment: Environment, commit: (body: () => void) => void): void {
  const hashes = HashIndex.open(environment.hashes)
  const step = () => commit(() => hashes.commitStep())
  addBlocks(hashes, environment.blocks, { covered: hashes.coveredUpTo, step })
  addBlocks(hashes, environment.importedBlocks, { covered: hashes.importedUpTo, step })
  while (hashes.needsStep) step()
  const { runs, trees } = environment
  for (let more = true; more;) {
    more = runs.catchUp(STEP_BLOCKS)
    commit(() => {
      runs.commitStep()
      // The trees need the runs of all blocks. The shard sets aside what is damaged, too, when it reads it.
      if (!more) trees.step(new SetAside())
    })
  }
  indexHeads(environment, commit)
}

/**
 * Adds the records after location `covered` to the hash index.
 * @param checkedFrom all blocks from this one on are read, even if the index has them, and must not be
 * damaged
 * @param step called after a limited number of records
 */
export function addBlocks(
  hashes: HashIndex,
  table: Table,
  { covered, checkedFrom, step }: { covered: number; checkedFrom?: number; step?(): void },
): void {
  let added = 0
  const first = Math.min(covered < 0 ? 0 : unpackLocation(covered).blockNo, checkedFrom ?? Infinity)
  for (const { key, value } of table.getRange({ start: blockKey(first) })) {
    const blockNo = key.readUIntBE(0, 6)
    assert(checkedFrom === undefined || isWhole(value), `block ${blockNo} matches its checksums`)
    const count = blockCount(value)
    for (let position = 0; position < count; position++) {
      const location = packLocation(blockNo, position)
      if (location <= covered) continue
      hashes.add(prefixOf(hashAt(value, position)), location)
      if (++added % STEP_RECORDS === 0) step?.()
    }
  }
}
