import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { pooledRandom } from '../../../src/base/random.js'
import { SegmentRegister } from '../../../src/cluster/database/register.js'
import { statementsOf } from '../../../src/cluster/database/statements.js'
import type { LogChannel } from '../../../src/protocol/cluster-log-messages.js'
import { ClusterLog } from '../../../workers/store/replica/cluster-log.js'
import { firstSegment } from '../../../workers/store/replica/cluster-segment.js'
import { LogClient } from '../../../workers/store/replica/log-client.js'
import type { OpenLog } from '../../../workers/store/log/shard-log.js'
import { makePostgres, type TestPostgres } from '../postgres/postgres.js'
import { TestShard } from '../shard/shard.js'
import { logSettings, shardLine } from './shard-line.js'

const tables = 'test'
const statements = statementsOf(tables)

/** The secret of test shards. */
export const testSecret = {
  cluster: '07'.repeat(16),
  masterSeed: Buffer.alloc(32, 7),
  random: pooledRandom(),
}

/** Shards of several nodes on one log, that of shard 0, in a separate PostgreSQL. */
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

  /** Creates the tables, and begins the log. */
  async begin(): Promise<void> {
    for (const statement of statements.create) await this.postgres.query(statement)
    const urls = [this.postgres.url]
    const register = new SegmentRegister({ urls, statements, nowMs: () => 0, chance: () => 0 })
    await register.begin(firstSegment(0, testSecret))
    await register.close()
  }

  /** Opens a channel to the log. */
  line(): LogChannel {
    return shardLine(this.#thread, 0)
  }

  /** Opens the log for a node. */
  log(name: string): OpenLog {
    return (from, rowOf) => {
      const writer = { node: name, incarnation: 1 }
      return new ClusterLog({ ...testSecret, writer, client: new LogClient(this.line()) }, from, rowOf)
    }
  }

  /** The shard of a node, with a separate directory. */
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
