import { limits } from '../../../src/base/limits/limits.js'
import { Interrupted, type ShardCheck } from '../../../src/protocol/store-tasks.js'
import { compareHlc, formatHlc, zeroHlc, type Hlc } from '../../../src/strand/hlc.js'
import { agentRowOf, type AgentRow } from '../tables/agent.js'
import { openEnvironment, type Environment } from '../environment.js'
import { HashIndex, prefixOf } from '../hash-index/hash-index.js'
import { blockCount, recordAt } from '../tables/record-codec.js'
import { isImportedBlock, packLocation } from '../tables/tables.js'
import { checkStrand } from './strand-check.js'
import { tableFaults } from './table-check.js'

/** What the check of a store works with. */
interface Checking {
  environment: Environment
  /** Called with the steps since the last call; each record takes two. Ends the check by throwing Interrupted. */
  onSteps(steps: number): void
}

/** The result of the walk over the blocks. */
interface Walk {
  records: number
  lastHlc: Hlc
}

/**
 * Checks the store of one shard: every block, every strand, and the tables that follow from them. It needs no key and
 * no other shard. Nothing may be written to the store meanwhile, so it is for copies and for stopped servers.
 * @param onSteps called with the steps since the last call, two for each record; ends the check by throwing
 *   Interrupted
 */
export async function checkStore(
  { path, shard }: { path: string; shard: number },
  onSteps: (steps: number) => void,
): Promise<ShardCheck> {
  const environment = openEnvironment(path, 'read')
  const checking = { environment, onSteps }
  const walk: Walk = { records: 0, lastHlc: zeroHlc }
  const faults: string[] = []
  try {
    for (const fault of storeFaults(checking, walk)) {
      faults.push(`shard ${shard}, ${fault}`)
      if (faults.length >= limits.checkFaultsMax) break
    }
    const agents = environment.names.getKeysCount({})
    return { agents, records: walk.records, lastHlc: formatHlc(walk.lastHlc), faults }
  } finally {
    await environment.root.close()
  }
}

function* storeFaults(checking: Checking, walk: Walk): Generator<string> {
  yield* guarded('blocks', () => blockFaults(checking, walk))
  let strandRecords = 0
  let agents = 0
  for (const { key, value } of checking.environment.names.getRange({})) {
    const name = value.toString()
    const no = key.readUInt32BE(0)
    if (no !== agents++) yield `agent ${name}: The number ${no} is not the next one`
    yield* guarded(`agent ${name}`, function* () {
      const row = agentRow(checking.environment, name)
      if (row?.no !== no) {
        yield 'The agent has no row of its number'
        return
      }
      yield* checkStrand(checking.environment, { name, row }, (count) => {
        strandRecords += count
        checking.onSteps(count)
      })
    })
  }
  if (strandRecords !== walk.records) {
    yield `strands: The strands have ${strandRecords} records, the blocks ${walk.records}`
  }
  yield* guarded('tables', () => tableFaults(checking.environment))
}

function agentRow({ agents }: Environment, name: string): AgentRow | undefined {
  const value = agents.get(Buffer.from(name))
  return value === undefined ? undefined : agentRowOf(value)
}

/** Faults, each with its subject. An error that is thrown on the way, such as a wrong checksum, is a fault too. */
function* guarded(what: string, faults: () => Iterable<string>): Generator<string> {
  try {
    for (const fault of faults()) yield `${what}: ${fault}`
  } catch (error) {
    if (error instanceof Interrupted || !(error instanceof Error)) throw error
    yield `${what}: ${error.message.replace(/^Assertion failed: /, 'It does not hold that ')}`
  }
}

/** Records between two calls of `onSteps`. */
const PROGRESS_RECORDS = 1_024

/** Walks over the blocks in commit order: the shard's clock goes forward, and each record is found by its hash. */
function* blockFaults({ environment, onSteps }: Checking, walk: Walk): Generator<string> {
  const index = HashIndex.open(environment.hashes)
  for (const { key, value } of blocksOf(environment)) {
    const blockNo = key.readUIntBE(0, 6)
    const count = blockCount(value)
    for (let position = 0; position < count; position++) {
      const record = recordAt(value, position)
      // Imported records keep the clocks of another time.
      if (!isImportedBlock(blockNo)) {
        // Records of two shards with the same reading may have met here (docs/adr/0021-resharding.md).
        if (compareHlc(record.hlc, walk.lastHlc) < 0) {
          yield `block ${blockNo}: The clock of the shard does not go forward`
        }
        walk.lastHlc = record.hlc
      }
      const location = packLocation(blockNo, position)
      if (index.covers(location) && !index.find(prefixOf(record.hash)).includes(location)) {
        yield `block ${blockNo}: Record ${record.hash} is not in the index of hashes`
      }
      walk.records += 1
      if (walk.records % PROGRESS_RECORDS === 0) onSteps(PROGRESS_RECORDS)
    }
  }
  onSteps(walk.records % PROGRESS_RECORDS)
}

function* blocksOf({ blocks, importedBlocks }: Environment): Generator<{ key: Buffer; value: Buffer }> {
  yield* blocks.getRange({})
  yield* importedBlocks.getRange({})
}
