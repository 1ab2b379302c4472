import { limits } from '../../../src/base/limits/limits.js'
import { Interrupted, type ShardCheck } from '../../../src/protocol/store-tasks.js'
import { compareHlc, formatHlc, zeroHlc, type Hlc } from '../../../src/strand/hlc.js'
import { agentRowOf, type AgentRow } from '../tables/agent.js'
import type { Environment } from '../environment.js'
import { openEnvironment } from '../open-environment.js'
import { HashIndex, prefixOf } from '../hash-index/hash-index.js'
import { blockCount, recordAt } from '../tables/record-codec.js'
import { isImportedBlock, packLocation } from '../tables/tables.js'
import { checkStrand } from './strand-check.js'
import { tableFaults } from './table-check.js'

interface CheckRun {
  environment: Environment
  /**
   * Called with the steps since the last call; each record takes two. May throw Interrupted to stop the
   * check.
   */
  onSteps(steps: number): void
}

/** Totals of the walk over the blocks. */
interface Walk {
  records: number
  lastHlc: Hlc
}

/**
 * Checks the store of one shard: every block, every strand, and the tables derived from them. The check needs
 * no keys and no other shard. Nothing may write to the store during the check, so use it on copies or while
 * the server is stopped.
 * @param onSteps called with the steps since the last call, two for each record; may throw Interrupted to
 * stop the check
 */
export async function checkStore(
  { path, shard }: { path: string; shard: number },
  onSteps: (steps: number) => void,
): Promise<ShardCheck> {
  const environment = openEnvironment(path, 'read')
  const run = { environment, onSteps }
  const walk: Walk = { records: 0, lastHlc: zeroHlc }
  const faults: string[] = []
  try {
    for (const fault of storeFaults(run, walk)) {
      faults.push(`shard ${shard}, ${fault}`)
      if (faults.length >= limits.checkFaultsMax) break
    }
    const agents = environment.names.getKeysCount({})
    return { agents, records: walk.records, lastHlc: formatHlc(walk.lastHlc), faults }
  } finally {
    await environment.root.close()
  }
}

function* storeFaults(run: CheckRun, walk: Walk): Generator<string> {
  yield* guarded('blocks', () => blockFaults(run, walk))
  let strandRecords = 0
  let agents = 0
  for (const { key, value } of run.environment.names.getRange({})) {
    const name = value.toString()
    const no = key.readUInt32BE(0)
    if (no !== agents++) yield `agent ${name}: The agent number ${no} is out of sequence`
    yield* guarded(`agent ${name}`, function* () {
      const row = agentRow(run.environment, name)
      if (row?.no !== no) {
        yield 'The agent has no row, or its row has another number'
        return
      }
      yield* checkStrand(run.environment, { name, row }, (count) => {
        strandRecords += count
        run.onSteps(count)
      })
    })
  }
  if (strandRecords !== walk.records) {
    yield `strands: The strands have ${strandRecords} records, but the blocks have ${walk.records}`
  }
  yield* guarded('tables', () => tableFaults(run.environment))
}

function agentRow({ agents }: Environment, name: string): AgentRow | undefined {
  const value = agents.get(Buffer.from(name))
  return value === undefined ? undefined : agentRowOf(name, value)
}

/**
 * Prefixes each fault with its subject. An error thrown by the check, such as a wrong checksum, is a fault
 * too.
 */
function* guarded(subject: string, faults: () => Iterable<string>): Generator<string> {
  try {
    for (const fault of faults()) yield `${subject}: ${fault}`
  } catch (error) {
    if (error instanceof Interrupted || !(error instanceof Error)) throw error
    yield `${subject}: ${error.message.replace(/^Assertion failed: /, 'Check failed: ')}`
  }
}

/** Records between two calls of `onSteps`. */
const PROGRESS_RECORDS = 1_024

/**
 * Walks over the blocks in commit order. The shard's clock must not go back, and the index must find each
 * record.
 */
function* blockFaults({ environment, onSteps }: CheckRun, walk: Walk): Generator<string> {
  const index = HashIndex.open(environment.hashes)
  for (const { key, value } of blocksOf(environment)) {
    const blockNo = key.readUIntBE(0, 6)
    const count = blockCount(value)
    for (let position = 0; position < count; position++) {
      const record = recordAt(value, position)
      // Imported records keep the clocks of the server that wrote them.
      if (!isImportedBlock(blockNo)) {
        // Equal readings are valid: resharding merges the logs of shards (docs/adr/0021-resharding.md).
        if (compareHlc(record.hlc, walk.lastHlc) < 0) {
          yield `block ${blockNo}: The clock of the shard goes back`
        }
        walk.lastHlc = record.hlc
      }
      const location = packLocation(blockNo, position)
      if (index.covers(location) && !index.find(prefixOf(record.hash)).includes(location)) {
        yield `block ${blockNo}: Record ${record.hash} is not in the hash index`
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
