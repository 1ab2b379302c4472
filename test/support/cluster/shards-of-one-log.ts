import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { pooledRandom } from '../../../src/base/random.js'
import { SegmentRegister } from '../../../src/cluster/database/register.js'
import { statementsOf } from '../../../src/cluster/database/statements.js'
import type { ShardLine } from '../../../src/protocol/cluster-log-messages.js'
import { ClusterLog } from '../../../workers/store/replica/cluster-log.js'
import { firstSegment } from '../../../workers/store/replica/cluster-segment.js'
import { LogLine } from '../../../workers/store/replica/log-line.js'
import type { OpenLog } from '../../../workers/store/log/shard-log.js'
import { makePostgres, type TestPostgres } from '../postgres/postgres.js'
import { TestShard } from '../shard/shard.js'
import { logSettings, shardLine } from './shard-line.js'

const tables = 'test'
const statements = statementsOf(tables)

/** That of test shards. */
export const testSecret = {
  cluster: '07'.repeat(16),
  masterSeed: Buffer.alloc(32, 7),
  random: pooledRandom(),
}

/** Nodes' shards over one log, that of shard 0, in a PostgreSQL of a test's own. */
export class ShardsOfOneLog {
  readonly postgres: TestPostgres
  readonly #thread: Worker
  readonly #open: TestShard[] = []

  private constructor(postgres: TestPostgres) {
    this.postgres = postgres
    const script = new URL('../../../dist/workers/cluster-log.js', import.meta.url)
    this.#thread = new Worker(script, { workerData: logSettings([postgres.url], tables) })
  }

  static async start(): Promise<ShardsOfOneLog> {
    const postgres = await makePostgres()
    await postgres.start()
    return new ShardsOfOneLog(postgres)
  }

  /** Makes the tables, and begins the log. */
  async begin(): Promise<void> {
    for (const statement of statements.create) await this.postgres.query(statement)
    const urls = [this.postgres.url]
    const register = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0 })
    await register.begin(firstSegment(0, testSecret))
    await register.close()
  }

  /** A new line to the log. */
  line(): ShardLine {
    return shardLine(this.#thread, 0)
  }

  /** How a node opens the log. */
  log(name: string): OpenLog {
    return (from, rowOf) => {
      const writer = { node: name, incarnation: 1 }
      return new ClusterLog({ ...testSecret, writer, line: new LogLine(this.line()) }, from, rowOf)
    }
  }

  /** A node's shard, on a directory of its own. */
  node(name: string, path = mkdtempSync(join(tmpdir(), 'strandfast-node-'))): TestShard {
    const shard = new TestShard(path, { openLog: this.log(name) })
    this.#open.push(shard)
    return shard
  }

  /** Ends the shards, and drops the tables. */
  async clear(): Promise<void> {
    for (const shard of this.#open.splice(0)) await shard.remove()
    for (const statement of statements.drop) await this.postgres.query(statement)
  }

  async end(): Promise<void> {
    await this.#thread.terminate()
    await this.postgres.remove()
  }
}
