import { isDeepStrictEqual } from 'node:util'
import { shardOf } from '../../src/strand/placement.js'
import { commitDurably, openEnvironment, rowCount, type Environment } from '../store/environment.js'
import { recover } from '../store/log/shard-log.js'
import { RowWriter } from '../store/row-mover.js'
import { Scrubber } from '../store/scrubber.js'
import { namespaceOfKey } from '../store/tables/auth-table.js'
import { putClockFloor } from '../store/tables/meta.js'
import { strandEnd } from '../store/tables/records.js'
import { indexStore } from '../store/tables/store-indexes.js'
import { runLength, seqMax } from '../store/tables/tables.js'
import { AgentMap } from './agent-map.js'
import { RecordMover } from './records.js'
import { rowMovers, type Move, type MovedTable } from './row-movers.js'
import { checkStrands } from './strand-check.js'

/** From what to build the shards, and where. */
export interface ReshardTask {
  /** Folders of the old shards, by their numbers. */
  from: readonly string[]
  /** Folders of the new shards, which do not exist yet. */
  to: readonly string[]
  /** The agent whose shard keeps the root namespace of auth: SERVICE_AGENT_ID. */
  rootAgent: string
  /** Called now and then with the progress. */
  onProgress(progress: ReshardProgress): void
}

/** How far a reshard is. */
export interface ReshardProgress {
  step: 'moved' | 'checked'
  records: number
  /** Records that there are. */
  total: number
}

/** What was built. */
export interface Resharded {
  agents: number
  records: number
}

/**
 * Builds shards with the content of the old ones, each strand in the shard where its agent is placed among the new
 * number, and checks them. The old ones do not change. The new ones are on disk, but not in use
 * (docs/adr/0021-resharding.md).
 * @throws Error when what is stored is damaged or cannot be written; what was built is then useless
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
    // Opened again, so that the check reads what is on disk and not what this process has in memory.
    for (const path of task.to) to.push(openEnvironment(path, 'read'))
    const checked = built.check(to, records)
    if (checked !== records) throw new Error(`Expected ${records} records, found ${checked}`)
    return { agents: built.agents, records }
  } finally {
    for (const environment of [...from, ...to]) await environment.root.close()
  }
}

/**
 * An old shard that has users of the root namespace without being the shard of `rootAgent`. Nothing says whose users
 * they are, so they would be lost.
 */
export async function strayUsers({
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
  readonly #move: Move

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

  /** @returns the records that were moved */
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
    for (const table of Object.keys(rowMovers)) if (isMoved(table)) this.#moveRows(table)
    for (const rows of this.#rows) rows.flush()
    for (const environment of this.#to) {
      const commit = (body: () => void) => commitDurably(environment, body)
      indexStore(environment, commit)
      commit(() => putClockFloor(environment, mover.lastHlc))
    }
    return records
  }

  /** Checks what was built of so many records. @returns the records that are there */
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
        throw new Error(`Expected agent number ${from.no} of shard ${from.shard} to end as before`)
    }
    return records
  }

  #numberAgents(): void {
    for (const [shard, { names }] of this.#from.entries()) {
      let next = 0
      for (const { key, value } of names.getRange({})) {
        const no = key.readUInt32BE(0)
        if (no !== next++) throw new Error(`Expected agent number ${next - 1} of shard ${shard}, found ${no}`)
        this.#move.agents.add(value.toString(), { shard, no })
      }
    }
  }

  /** Records of all strands, by the end of each. */
  #recordCount(): number {
    let count = 0
    for (const { shard, no } of this.#move.agents.all()) {
      const run = this.#from[shard]?.runs.before(no, seqMax)
      count += run === undefined ? 0 : run.firstSeq + runLength(run)
    }
    return count
  }

  #moveRows(table: MovedTable): void {
    for (const [shard, environment] of this.#from.entries()) {
      for (const row of environment[table].getRange({})) {
        for (const { shard: to, ...moved } of rowMovers[table]({ shard, ...row }, this.#move))
          this.#rows[to]?.put({ table, ...moved })
      }
    }
  }

  /** Checks that no row has replaced another. */
  #checkRows(environment: Environment, shard: number): void {
    for (const [table, written] of this.#rows[shard]?.written ?? []) {
      const found = rowCount(environment[table])
      if (found === written || uncounted.has(table)) continue
      throw new Error(`Expected ${written} rows in ${table} of the new shard ${shard}, found ${found}`)
    }
  }
}

/**
 * Tables that have other rows, too, and answers that do not name their shard, which may replace each other: their keys are then
 * refused.
 */
const uncounted: ReadonlySet<string> = new Set(['meta', 'strands', 'idempotency', 'expiries'])

/** How a strand ends. */
function endOf(environment: Environment | undefined, agentNo: number) {
  const end = environment && strandEnd(environment, agentNo)
  return end && { hash: end.record.hash, seq: end.record.seq, strandBytes: end.strandBytes }
}

function isMoved(table: string): table is MovedTable {
  return Object.hasOwn(rowMovers, table)
}

/** Overwrites what an erasure has left in the old file, which is about to be removed. */
function endScrubbing(environment: Environment): void {
  const scrubber = new Scrubber(environment)
  while (scrubber.ready) scrubber.step()
}
