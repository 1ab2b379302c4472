import { assert } from '../../src/base/assert.js'
import { shardOf } from '../../src/strand/placement.js'
import { laterHlc, zeroHlc, type Hlc } from '../../src/strand/hlc.js'
import { agentRowOf, type AgentRow } from '../store/tables/agent.js'
import { namespaceOfKey } from '../store/tables/auth-table.js'
import { putClockFloor, readClockFloor } from '../store/tables/clock-floor.js'
import { allLastTold, putLastTold } from '../store/tables/last-told.js'
import { commitDurably, openEnvironment, rowCount, type Environment } from '../store/environment.js'
import { keptAnswerOf } from '../store/tables/idempotency.js'
import { recover } from '../store/log/shard-log.js'
import { Scrubber } from '../store/scrubber.js'
import { agentNoKey, expiryKey, runLength, seqMax } from '../store/tables/tables.js'
import { strandEnd } from '../store/tables/records.js'
import { AgentMap, type AgentPlace } from './agent-map.js'
import { importedRecords, mergedLogs, type OldRecord } from './log-reader.js'
import { LogWriter } from './log-writer.js'
import { rowMovers, shardOfAnswer, type Move, type MovedTable } from './row-movers.js'
import { RowWriter } from './row-writer.js'
import { checkStrands } from './strand-check.js'
import { StrandSizes } from './strand-sizes.js'

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
  #lastHlc: Hlc = zeroHlc

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
    for (const environment of this.#from) {
      endScrubbing(environment)
    }
    this.#moveAgents()
    const records = this.#moveRecords()
    for (const table of Object.keys(rowMovers)) if (isMoved(table)) this.#moveRows(table)
    this.#moveAnswers()
    for (const rows of this.#rows) rows.flush()
    // Of the audit strand, which is in the first shard, however many there are.
    const told = new Map(this.#from.flatMap((environment) => [...allLastTold(environment)]))
    for (const [shard, environment] of this.#to.entries()) {
      commitDurably(environment, () => {
        putClockFloor(environment, this.#lastHlc)
        if (shard === 0) putLastTold(environment, told)
      })
    }
    return records
  }

  /** Checks what was built of so many records. @returns the records that are there */
  check(built: readonly Environment[], total: number): number {
    this.#checkRows(built)
    return this.#checkRecords(built, total)
  }

  #writer(shard: number): RowWriter {
    const writer = this.#rows[shard]
    assert(writer !== undefined, 'a row is moved to one of the new shards')
    return writer
  }

  #moveAgents(): void {
    for (const [shard, { names, agents }] of this.#from.entries()) {
      let next = 0
      for (const { key, value } of names.getRange({})) {
        const no = key.readUInt32BE(0)
        if (no !== next++) throw new Error(`Expected agent number ${next - 1} of shard ${shard}, found ${no}`)
        const name = Buffer.from(value)
        const bytes = agents.get(name)
        if (bytes === undefined) throw new Error(`Expected a row of the agent ${name.toString()}`)
        const row = agentRowOf(bytes)
        const place = this.#move.agents.add(name.toString(), { shard, no })
        const moved: AgentRow = { ...row, no: place.no }
        const writer = this.#writer(place.shard)
        writer.put('agents', name, Buffer.from(JSON.stringify(moved)))
        writer.put('names', agentNoKey(place.no), name)
      }
    }
  }

  #moveRecords(): number {
    const writers = this.#to.map((environment) => new LogWriter(environment))
    const sizes = this.#from.map((environment) => new StrandSizes(environment))
    const total = this.#recordCount()
    let records = 0
    const append = ({ shard, record }: OldRecord): void => {
      const place = this.#placeOf({ shard, no: record.agentNo })
      const strandBytes = sizes[shard]?.add({ ...record, no: record.agentNo })
      const writer = writers[place.shard]
      assert(strandBytes !== undefined && writer !== undefined, 'a record is moved to one of the new shards')
      writer.append(record, { agentNo: place.no, strandBytes })
      this.#lastHlc = laterHlc(this.#lastHlc, record.hlc)
      this.#task.onProgress({ step: 'moved', records: ++records, total })
    }
    for (const environment of this.#from) this.#lastHlc = laterHlc(this.#lastHlc, readClockFloor(environment))
    for (const old of mergedLogs(this.#from)) append(old)
    for (const writer of writers) writer.beginImported()
    for (const old of importedRecords(this.#from)) append(old)
    for (const writer of writers) writer.finish()
    return records
  }

  /** Records of all strands, by the end of each. */
  #recordCount(): number {
    let count = 0
    for (const [shard] of this.#to.entries()) {
      for (const { from } of this.#move.agents.agentsOf(shard)) {
        const run = this.#from[from.shard]?.runs.before(from.no, seqMax)
        count += run === undefined ? 0 : run.firstSeq + runLength(run)
      }
    }
    return count
  }

  #placeOf(from: AgentPlace): AgentPlace {
    const { agents } = this.#move
    return { shard: agents.shardOf(from), no: agents.numberOf(from) }
  }

  #moveRows(table: MovedTable): void {
    const mover = rowMovers[table]
    for (const [shard, environment] of this.#from.entries()) {
      for (const { key, value } of environment[table].getRange({})) {
        const row = mover({ shard, key: Buffer.from(key), value: Buffer.from(value) }, this.#move)
        this.#writer(row.shard).put(table, row.key, row.value)
      }
    }
  }

  /** Moves answers by Idempotency-Key, each with its current expiry and no other. */
  #moveAnswers(): void {
    for (const { idempotency } of this.#from) {
      for (const { key, value } of idempotency.getRange({})) {
        const row = Buffer.from(key)
        const bytes = Buffer.from(value)
        const kept = keptAnswerOf(bytes)
        const shard = shardOfAnswer(kept, this.#move)
        const writers = shard === 'all' ? this.#rows : [this.#writer(shard)]
        for (const writer of writers) {
          writer.put('idempotency', row, bytes)
          writer.put('expiries', expiryKey(kept.expiresAtMs, row), Buffer.alloc(0))
        }
      }
    }
  }

  /**
   * Checks that no row has replaced another. Only answers that do not name their shard may: their keys are then
   * refused.
   */
  #checkRows(built: readonly Environment[]): void {
    for (const [shard, environment] of built.entries()) {
      for (const [table, written] of this.#writer(shard).written) {
        const found = rowCount(environment[table])
        if (found === written || table === 'idempotency' || table === 'expiries') continue
        throw new Error(`Expected ${written} rows in ${table} of the new shard ${shard}, found ${found}`)
      }
    }
  }

  #checkRecords(built: readonly Environment[], total: number): number {
    let records = 0
    for (const [shard, environment] of built.entries()) {
      const agents = this.#move.agents.counts[shard] ?? 0
      const onRecord = () => this.#task.onProgress({ step: 'checked', records: ++records, total })
      const heads = checkStrands(environment, { agents, onRecord })
      for (const { from, no } of this.#move.agents.agentsOf(shard)) {
        const old = this.#from[from.shard]
        const end = old === undefined ? undefined : strandEnd(old, from.no)
        const same =
          end !== undefined &&
          end.record.hash === heads.hash(no) &&
          end.record.seq === heads.seq(no) &&
          end.strandBytes === heads.strandBytes(no)
        if (!same) throw new Error(`Expected agent number ${from.no} of shard ${from.shard} to end as before`)
      }
    }
    return records
  }
}

function isMoved(table: string): table is MovedTable {
  return Object.hasOwn(rowMovers, table)
}

/** Overwrites what an erasure has left in the old file, which is about to be removed. */
function endScrubbing(environment: Environment): void {
  const scrubber = new Scrubber(environment)
  while (scrubber.ready) scrubber.step()
}
