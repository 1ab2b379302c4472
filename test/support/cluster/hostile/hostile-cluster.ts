import { once } from 'node:events'

import { rmSync } from 'node:fs'
import type { ChildProcess } from 'node:child_process'
import type { Client } from 'pg'
import { authSettings, rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import { eventually } from '../../eventually.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../../postgres/cluster-of-one.js'
import { copyData } from '../../server/copied-data.js'
import { startServer, type TestServer } from '../../server/server.js'
import { requestNode } from '../rounds/cluster-client.js'
import { type Answers, Clients, type Known, look, owed } from './history.js'
import type { Belief } from './oracle.js'
import { keep, keepOther, restore } from './tables.js'

/** Earlier states of the cluster that the attacker has copied, and another cluster with the same seed. */
export const moments = ['pushed', 'before', 'other_cluster'] as const
/** The state of the tables after the node had stopped. */
const LAST = 'last'

export const shardCount = 2

/** The serving node, and another one. */
export const nodeNames = ['first-node', 'other-node'] as const
export const advertised = 'http://node.example'
/** An address at which no node accepts links. */
export const linkAddress = '127.0.0.1:1'

/** Settings of the nodes: without links, so that a standby answers nothing and names the serving node. */
const nodeEnv = {
  ...authSettings,
  SERVICE_ROOT_API_KEY: rootKey,
  SERVICE_CLUSTER_LEASE_SECS: '1',
  SERVICE_CLUSTER_LINK_ADDRESS: linkAddress,
  SERVICE_CLUSTER_ADVERTISE: advertised,
  SERVICE_TRUSTED_PROXIES: '127.0.0.1/32',
}

/**
 * A cluster with a history, whose database is controlled by an attacker without the seed; and a second
 * cluster with the same seed.
 */
export class HostileCluster {
  readonly cluster: ClusterOfOne
  /** A connection of the attacker. */
  readonly database: Client
  /** The last answers to clients. */
  readonly belief: Belief
  /** The directory of the node that has served and was stopped. */
  readonly kept: string
  /** The root over all heads, as reported by a pull. */
  readonly headsRoot: string
  readonly #processes: ChildProcess[] = []

  private constructor(cluster: ClusterOfOne, database: Client, history: History & { headsRoot: string }) {
    this.cluster = cluster
    this.database = database
    this.belief = {
      known: history.known,
      truth: history.truth,
      earlier: history.earlier,
      allowed: 'the truth',
    }
    this.kept = history.kept
    this.headsRoot = history.headsRoot
  }

  /** @param also further requests of its clients before the end */
  static async make(also?: (url: string) => Promise<unknown>): Promise<HostileCluster> {
    const cluster = await makeClusterOfOne()
    const database = await cluster.postgres.connect()
    const history = await makeHistory(cluster, database, also)
    const { stdout } = await cluster.run(['cluster', 'pull', cluster.newPath('pulled')])
    return new HostileCluster(cluster, database, { ...history, headsRoot: headsRootOf(stdout) ?? '' })
  }

  /** Kills the running nodes, and restores the tables. */
  async restore(): Promise<void> {
    for (const process of this.#processes.splice(0)) await kill(process)
    await restore(this.database, LAST)
  }

  /** A copy of the directory of the stopped node. */
  keptCopy(): string {
    const copy = this.cluster.newPath('kept')
    copyData(this.kept, copy)
    return copy
  }

  /**
   * Starts a node, with a new directory unless one is given.
   * @param onStderr receives the standard error, even before the node listens
   * @throws Error if the node ends before it listens
   */
  start(
    node: (typeof nodeNames)[number],
    dataDir = this.cluster.newPath('data'),
    onStderr: (text: string) => void = () => {},
  ): Promise<TestServer> {
    const env = { ...nodeEnv, SERVICE_CLUSTER_NODE: node }
    const spawned = (process: ChildProcess) => {
      this.#processes.push(process)
      process.stderr?.on('data', (bytes: Buffer) => onStderr(bytes.toString()))
    }
    return this.cluster.start({ dataDir, env, spawned })
  }

  /** Starts a server outside a cluster with a pulled directory. */
  async startAlone(dataDir: string): Promise<TestServer> {
    const env = { ...authSettings, SERVICE_ROOT_API_KEY: rootKey, SERVICE_MASTER_SEED: testSeed }
    const server = await startServer({ dataDir, env })
    this.#processes.push(server.process)
    return server
  }

  pull(directory: string) {
    return this.cluster.run(['cluster', 'pull', directory])
  }

  async remove(): Promise<void> {
    for (const process of this.#processes.splice(0)) await kill(process)
    await this.database.end()
    await this.cluster.remove()
  }
}

async function kill(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const exited = once(process, 'exit')
  process.kill('SIGKILL')
  await exited
}

export function headsRootOf(stdout: string): string | undefined {
  return /heads root +([0-9a-f]{64})/.exec(stdout)?.[1]
}

/** Resolves when a node answers for all shards. */
export async function serves({ url }: Pick<TestServer, 'url'>): Promise<void> {
  await eventually(async () => (await requestNode(url, { method: 'GET', path: '/readyz' }))?.status === 200)
}

interface History {
  known: Known
  truth: Answers
  earlier: Answers
  kept: string
}

/**
 * Runs a cluster, pulls it, and lets it continue like a staging system; the pulled directory becomes the
 * attacked cluster. So that cluster has a checkpoint and a new era of tokens: an earlier sign-in is refused.
 */
async function makeHistory(
  cluster: ClusterOfOne,
  database: Client,
  also: (url: string) => Promise<unknown> = async () => {},
): Promise<History> {
  await database.query('CREATE DATABASE other_cluster')
  const env = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace(/postgres$/, 'other_cluster') }
  done(await cluster.run(['cluster', 'init', '--shards', `${shardCount}`], env))
  const first = await cluster.start({ env: { ...nodeEnv, ...env, SERVICE_CLUSTER_NODE: 'staging' } })
  await serves(first)
  const early = new Clients(first.url)
  await early.makeAgents()
  await early.writeAll('at the beginning')
  const former = await early.signIn('former@example.org')
  const kept = cluster.newPath('pulled')
  done(await cluster.run(['cluster', 'pull', kept], env))
  const shared = [...early.records]
  await early.writeAll('of the staging system')
  const foreignKey = await early.makeKey('staging', ['admin:*'])
  await first.halt()
  rmSync(first.dataDir, { recursive: true })

  done(await cluster.run(['cluster', 'push', '--data-dir', kept]))
  await keep(database, 'pushed')
  const other = await cluster.postgres.connect('other_cluster')
  await keepOther(database, 'other_cluster', other)
  await other.end()
  const node = await cluster.start({ dataDir: kept, env: { ...nodeEnv, SERVICE_CLUSTER_NODE: nodeNames[0] } })
  await serves(node)
  const clients = new Clients(node.url)
  const earlier = await workload(clients, node.url, database)
  await also(node.url)
  const known = {
    records: [...shared, ...clients.records],
    credentials: [...clients.credentials, former, foreignKey],
  }
  const truth = await look(node.url, known)
  await node.halt()
  await keep(database, LAST)
  return { known, truth, earlier, kept }
}

/** The requests of the clients before the attack. @returns the answers before they revoked and erased */
async function workload(clients: Clients, url: string, database: Client): Promise<Answers> {
  await clients.makeKey('staff', ['records:read'])
  const fired = await clients.makeKey('fired', ['admin:*'])
  await clients.signIn('live@example.org')
  const left = await clients.signIn('left@example.org')
  await clients.writeAll('while all was well')
  const [erased, deleted] = [
    await clients.write('diary', `erased: ${owed}`),
    await clients.write('diary', `deleted: ${owed}`),
  ]
  const earlier = await look(url, clients)
  await keep(database, 'before')
  await clients.deleteKey(fired)
  await clients.signOut(left)
  await clients.post(`${erased}/erase`, {})
  await clients.send({ method: 'DELETE', path: deleted })
  await clients.writeAll('the last word')
  return earlier
}

function done({ status, stderr }: { status: number | null; stderr: string }): void {
  if (status !== 0) throw new Error(`A command ended with ${status}: ${stderr}`)
}
