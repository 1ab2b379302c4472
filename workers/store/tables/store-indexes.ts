import type { Table } from './table.js'
import type { Environment } from '../environment.js'
import { HashIndex, prefixOf } from '../hash-index/hash-index.js'
import { indexHeads } from './logged-heads.js'
import { blockCount, hashAt } from './record-codec.js'
import { blockKey, packLocation, unpackLocation } from './tables.js'

/** Records, and blocks, between two steps of the indexes. */
const STEP_RECORDS = 8_192
const STEP_BLOCKS = 512

/**
 * Brings the tables that follow from blocks up to them, however many have come since. A shard that opens its store adds
 * what is left, which has to be little.
 * @param commit writes within a transaction of its own
 */
export function indexStore(environment: Environment, commit: (body: () => void) => void): void {
  const hashes = HashIndex.open(environment.hashes)
  const step = () => commit(() => hashes.commitStep())
  addBlocks(hashes, environment.blocks, { covered: hashes.coveredUpTo, step })
  addBlocks(hashes, environment.importedBlocks, { covered: hashes.importedUpTo, step })
  while (hashes.needsStep) step()
  const { runs } = environment
  for (let more = true; more;) {
    more = runs.catchUp(STEP_BLOCKS)
    commit(() => runs.commitStep())
  }
  indexHeads(environment, commit)
}

function addBlocks(
  hashes: HashIndex,
  table: Table,
  { covered, step }: { covered: number; step(): void },
): void {
  let added = 0
  const first = covered < 0 ? 0 : unpackLocation(covered).blockNo
  for (const { key, value } of table.getRange({ start: blockKey(first) })) {
    const blockNo = key.readUIntBE(0, 6)
    const count = blockCount(value)
    for (let position = 0; position < count; position++) {
      const location = packLocation(blockNo, position)
      if (location <= covered) continue
      hashes.add(prefixOf(hashAt(value, position)), location)
      if (++added % STEP_RECORDS === 0) step()
    }
  }
}
