import { isDeepStrictEqual } from 'node:util'
import { shardOf } from '../../src/strand/placement.js'
import { commitDurably, rowCount, type Environment } from '../store/environment.js'
import { openEnvironment } from '../store/open-environment.js'
import { recover } from '../store/log/shard-log.js'
import type { Move, MovedTable, RowMover } from '../store/row-move.js'
import { RowWriter } from '../store/row-mover.js'
import { Scrubber } from '../store/scrubber.js'
import { namespaceOfKey } from '../store/tables/auth-table.js'
import { putClockFloor } from '../store/tables/meta.js'
import { strandEnd } from '../store/tables/records.js'
import { indexStore } from '../store/tables/store-indexes.js'
import { runLength, seqMax } from '../store/tables/tables.js'
import { AgentMap } from './agent-map.js'
import { RecordMover } from './records.js'
import { rowMovers } from './row-movers.js'
import { checkStrands } from './strand-check.js'

export interface ReshardTask {
  /** Folders of the old shards, by shard number. */
  from: readonly string[]
  /** Folders of the new shards, which do not exist yet. */
  to: readonly string[]
  /** The agent in whose shard the root namespace of auth is stored: SERVICE_AGENT_ID. */
  rootAgent: string
  onProgress(progress: ReshardProgress): void
}

export interface ReshardProgress {
  step: 'moved' | 'checked'
  records: number
  total: number
}

/** The size of the new shards. */
export interface Resharded {
  agents: number
  records: number
}

/**
 * Builds new shards with the content of the old ones, each strand in the shard to which the new number of
 * shards assigns its agent, and checks them. The old shards do not change. The new shards are on disk, but
 * not in use (docs/adr/0021-resharding.md).
 * @throws Error if the old shards are damaged or the new ones cannot be written; discard the new shards then
 */
export async function reshard(task: ReshardTask): Promise<Resharded> {
  const from: Environment[] = []
  const to: Environment[] = []
  try {
    for (const path of task.from) {
      await recover(path)
      from.push(openEnvironment(path, 'write'))
    }
    for (const path of task.to) to.push(openEnvironment(path, 'write'))
    const built = new Reshard(task, { from, to })
    const records = built.build()
    for (const environment of to.splice(0)) await environment.root.close()
    // Opened again, so that the check reads from disk and not from the memory of this process.
    for (const path of task.to) to.push(openEnvironment(path, 'read'))
    const checked = built.check(to, records)
    if (checked !== records) throw new Error(`The new shards have ${checked} records instead of ${records}`)
    return { agents: built.agents, records }
  } finally {
    for (const environment of [...from, ...to]) await environment.root.close()
  }
}

/**
 * Whether any old shard but that of `rootAgent` has users of the root namespace. A reshard would lose these
 * users, because their shard cannot be determined.
 */
export async function hasStrayUsers({
  from,
  rootAgent,
}: Pick<ReshardTask, 'from' | 'rootAgent'>): Promise<boolean> {
  const own = shardOf(rootAgent, from.length)
  for (const [shard, path] of from.entries()) {
    if (shard === own) continue
    await recover(path)
    const environment = openEnvironment(path, 'write')
    try {
      // The root namespace has no name, so its keys begin with NUL.
      for (const key of environment.auth.getKeys({ limit: 1 })) if (namespaceOfKey(key) === '') return true
    } finally {
      await environment.root.close()
    }
  }
  return false
}

class Reshard {
  readonly #task: ReshardTask
  readonly #from: readonly Environment[]
  readonly #to: readonly Environment[]
  readonly #rows: RowWriter[]
  readonly #move: Move & { agents: AgentMap }

  constructor(task: ReshardTask, { from, to }: { from: readonly Environment[]; to: readonly Environment[] }) {
    this.#task = task
    this.#from = from
    this.#to = to
    this.#rows = to.map((environment) => new RowWriter(environment))
    const agents = new AgentMap(
      from.map(({ names }) => rowCount(names)),
      to.length,
    )
    this.#move = { agents, shards: to.length, rootAgent: task.rootAgent }
  }

  get agents(): number {
    return this.#move.agents.counts.reduce((sum, count) => sum + count, 0)
  }

  /** @returns the number of moved records */
  build(): number {
    for (const environment of this.#from) endScrubbing(environment)
    this.#numberAgents()
    const total = this.#recordCount()
    let records = 0
    const onRecord = () => this.#task.onProgress({ step: 'moved', records: ++records, total })
    const { agents } = this.#move
    const mover = new RecordMover({ from: this.#from, to: this.#rows, agents, onRecord })
    mover.moveLogs()
    mover.moveImported()
    for (const [table, mover] of rowMovers) this.#moveRows(table, mover)
    for (const rows of this.#rows) rows.flush()
    for (const environment of this.#to) {
      const commit = (body: () => void) => commitDurably(environment, body)
      indexStore(environment, commit)
      commit(() => putClockFloor(environment, mover.lastHlc))
    }
    return records
  }

  /**
   * Checks the new shards.
   * @param total expected records, for the progress;
   * @returns the number of records found
   */
  check(built: readonly Environment[], total: number): number {
    let records = 0
    const onRecord = () => this.#task.onProgress({ step: 'checked', records: ++records, total })
    for (const [shard, environment] of built.entries()) {
      this.#checkRows(environment, shard)
      checkStrands(environment, { agents: this.#move.agents.counts[shard] ?? 0, onRecord })
    }
    for (const from of this.#move.agents.all()) {
      const to = this.#move.agents.find(from)
      if (!isDeepStrictEqual(endOf(this.#from[from.shard], from.no), endOf(built[to.shard], to.no)))
        throw new Error(
          `The strand of agent number ${from.no} of shard ${from.shard} has another end after the move`,
        )
    }
    return records
  }

  #numberAgents(): void {
    for (const [shard, { names }] of this.#from.entries()) {
      let next = 0
      for (const { key, value } of names.getRange({})) {
        const no = key.readUInt32BE(0)
        if (no !== next++) throw new Error(`Shard ${shard} has no agent number ${next - 1}, but number ${no}`)
        this.#move.agents.add(value.toString(), { shard, no })
      }
    }
  }

  /** The number of records of all strands, from the last run of each. */
  #recordCount(): number {
    let count = 0
    for (const { shard, no } of this.#move.agents.all()) {
      const run = this.#from[shard]?.runs.before(no, seqMax)
      count += run === undefined ? 0 : run.firstSeq + runLength(run)
    }
    return count
  }

  #moveRows(table: MovedTable, mover: RowMover): void {
    for (const [shard, environment] of this.#from.entries()) {
      for (const row of environment[table].getRange({})) {
        for (const { shard: to, ...moved } of mover({ shard, ...row }, this.#move))
          this.#rows[to]?.put({ table, ...moved })
      }
    }
  }

  /** Checks the number of rows, so that no row has replaced another. */
  #checkRows(environment: Environment, shard: number): void {
    for (const [table, written] of this.#rows[shard]?.written ?? []) {
      const found = rowCount(environment[table])
      if (found === written || uncounted.has(table)) continue
      throw new Error(`Table ${table} of the new shard ${shard} has ${found} rows instead of ${written}`)
    }
  }
}

/**
 * Tables whose rows cannot be counted: `meta` and `strands` also have other rows, and answers of old
 * versions, which do not have their shard, are written to all shards and may replace each other.
 */
const uncounted: ReadonlySet<string> = new Set(['meta', 'strands', 'idempotency', 'expiries'])

function endOf(environment: Environment | undefined, agentNo: number) {
  const end = environment && strandEnd(environment, agentNo)
  return end && { hash: end.record.hash, seq: end.record.seq, strandBytes: end.strandBytes }
}

/** Overwrites erased bodies in an old file, which is about to be removed. */
function endScrubbing(environment: Environment): void {
  const scrubber = new Scrubber(environment)
  while (scrubber.ready) scrubber.step()
}
