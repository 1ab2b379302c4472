import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run, type Ran } from '../server/command.js'
import { startServer, testRootKey, type TestServer } from '../server/server.js'
import { makePostgres, type PostgresOptions, type TestPostgres } from './postgres.js'

/** The master seed of test clusters. */
export const testSeed = '07'.repeat(32)

/** The database, nodes and commands of a cluster on this machine. */
export interface ClusterOfOne {
  postgres: TestPostgres
  env: Record<string, string>
  /** Runs a command of the program with the settings of the cluster. */
  run(args: readonly string[], env?: Record<string, string>): Promise<Ran>
  /** Runs a command of the program without these settings. */
  runAlone(args: readonly string[], env: Record<string, string>): Promise<Ran>
  /** Starts a node, on a new data directory unless one is given. */
  start(options?: {
    dataDir?: string
    env?: Record<string, string>
    nodeOptions?: readonly string[]
    spawned?(process: ChildProcess): void
  }): Promise<TestServer>
  /** A new path that does not exist yet. */
  newPath(name: string): string
  /** Kills the nodes that still run, as after a failed test. */
  killNodes(): Promise<void>
  remove(): Promise<void>
}

/** Creates an empty database. */
export async function makeClusterOfOne(making: PostgresOptions = {}): Promise<ClusterOfOne> {
  const postgres = await makePostgres({ ...making, settings: { fsync: 'on', ...making.settings } })
  await postgres.start()
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-cluster-'))
  const servers: TestServer[] = []
  const env = {
    SERVICE_CLUSTER_URL: postgres.url,
    SERVICE_CLUSTER_LEASE_SECS: '3',
    SERVICE_MASTER_SEED: testSeed,
    SERVICE_ROOT_API_KEY: testRootKey,
  }
  let count = 0
  const place = (name: string) => join(directory, `${name}-${(count += 1)}`)
  const killNodes = async () => {
    for (const { process, halt } of servers.splice(0)) {
      if (process.exitCode === null && process.signalCode === null) await halt('SIGKILL')
    }
  }
  return {
    postgres,
    env,
    run: (args, more = {}) => run(args, { ...env, ...more }),
    runAlone: (args, more) => run(args, more),
    async start({ dataDir = place('data'), env: more = {}, ...options } = {}) {
      const server = await startServer({ dataDir, env: { ...env, ...more }, ...options })
      servers.push(server)
      return server
    },
    newPath: place,
    killNodes,
    async remove() {
      await killNodes()
      await postgres.remove()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
