import { once } from 'node:events'

import { cpSync, rmSync } from 'node:fs'
import type { ChildProcess } from 'node:child_process'
import type { Client } from 'pg'
import { authSettings, rootKey } from '../../../../scripts/crash-loop/victim.mjs'
import { eventually } from '../../eventually.js'
import { type ClusterOfOne, makeClusterOfOne, testSeed } from '../../postgres/cluster-of-one.js'
import { startServer, type TestServer } from '../../server/server.js'
import { askNode } from '../rounds/cluster-client.js'
import { type Answers, Clients, type Known, look, owed } from './history.js'
import type { Belief } from './oracle.js'
import { keep, keepOther, restore } from './tables.js'

/** Moments of the cluster that its operator has kept, and another cluster of the same seed. */
export const moments = ['pushed', 'before', 'stranger'] as const
/** The tables as they were when the node had stopped. */
const LAST = 'last'

export const shardCount = 2

/** The node that serves, and another one. */
export const nodeNames = ['first-node', 'other-node'] as const
export const advertised = 'http://node.example'
/** Where no node takes links. */
export const linkAddress = '127.0.0.1:1'

/** How nodes run: without links, so that one that stands by answers nothing, and names the one that serves. */
const nodeEnv = {
  ...authSettings,
  SERVICE_ROOT_API_KEY: rootKey,
  SERVICE_CLUSTER_LEASE_SECS: '1',
  SERVICE_CLUSTER_LINK_ADDRESS: linkAddress,
  SERVICE_CLUSTER_ADVERTISE: advertised,
  SERVICE_TRUSTED_PROXIES: '127.0.0.1/32',
}

/** A cluster with a history, whose database belongs to somebody without the seed; and a second cluster of the same seed. */
export class HostileCluster {
  readonly cluster: ClusterOfOne
  /** A connection of the operator. */
  readonly database: Client
  /** What clients were answered last. */
  readonly belief: Belief
  /** The directory of the node that has served, which has stopped. */
  readonly kept: string
  /** The root over all heads, as a pull says. */
  readonly headsRoot: string
  readonly #processes: ChildProcess[] = []

  private constructor(cluster: ClusterOfOne, database: Client, made: Made & { headsRoot: string }) {
    this.cluster = cluster
    this.database = database
    this.belief = { known: made.known, truth: made.truth, earlier: made.earlier, allowed: 'the truth' }
    this.kept = made.kept
    this.headsRoot = made.headsRoot
  }

  /** @param also what else its clients do before the end */
  static async make(also?: (url: string) => Promise<unknown>): Promise<HostileCluster> {
    const cluster = await makeClusterOfOne()
    const database = await cluster.postgres.connect()
    const made = await makeHistory(cluster, database, also)
    const { stdout } = await cluster.run(['cluster', 'pull', cluster.place('pulled')])
    return new HostileCluster(cluster, database, { ...made, headsRoot: headsRootOf(stdout) ?? '' })
  }

  /** Kills the nodes that run, and makes the tables what they were. */
  async restore(): Promise<void> {
    for (const process of this.#processes.splice(0)) await killed(process)
    await restore(this.database, LAST)
  }

  /** A copy of the directory of the node that has stopped. */
  keptCopy(): string {
    const copy = this.cluster.place('kept')
    cpSync(this.kept, copy, { recursive: true })
    return copy
  }

  /**
   * Starts a node, on a new directory unless one is named.
   * @param heard what it writes to standard error, also before it listens
   * @throws Error where it ends before it listens
   */
  start(
    node: (typeof nodeNames)[number],
    dataDir = this.cluster.place('data'),
    heard: (text: string) => void = () => {},
  ): Promise<TestServer> {
    const env = { ...nodeEnv, SERVICE_CLUSTER_NODE: node }
    const spawned = (process: ChildProcess) => {
      this.#processes.push(process)
      process.stderr?.on('data', (bytes: Buffer) => heard(bytes.toString()))
    }
    return this.cluster.start({ dataDir, env, spawned })
  }

  /** Starts a server of its own on what was pulled. */
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
    for (const process of this.#processes.splice(0)) await killed(process)
    await this.database.end()
    await this.cluster.remove()
  }
}

async function killed(process: ChildProcess): Promise<void> {
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
  await eventually(async () => (await askNode(url, { method: 'GET', path: '/readyz' }))?.status === 200)
}

interface Made {
  known: Known
  truth: Answers
  earlier: Answers
  kept: string
}

/**
 * A cluster lives and is pulled, and lives on, as a staging system would; what was pulled becomes the cluster that is attacked. So it
 * has a checkpoint, and an era of tokens: one that was signed in before is refused.
 */
async function makeHistory(
  cluster: ClusterOfOne,
  database: Client,
  also: (url: string) => Promise<unknown> = async () => {},
): Promise<Made> {
  await database.query('CREATE DATABASE stranger')
  const env = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace(/postgres$/, 'stranger') }
  done(await cluster.run(['cluster', 'init', '--shards', `${shardCount}`], env))
  const first = await cluster.start({ env: { ...nodeEnv, ...env, SERVICE_CLUSTER_NODE: 'staging' } })
  await serves(first)
  const early = new Clients(first.url)
  await early.makeAgents()
  await early.writeAll('at the beginning')
  const former = await early.signIn('former@example.org')
  const kept = cluster.place('pulled')
  done(await cluster.run(['cluster', 'pull', kept], env))
  const shared = [...early.records]
  await early.writeAll('of the staging system')
  const stranger = await early.makeKey('staging', ['admin:*'])
  await first.halt()
  rmSync(first.dataDir, { recursive: true })

  done(await cluster.run(['cluster', 'push', '--data-dir', kept]))
  await keep(database, 'pushed')
  const other = await cluster.postgres.connect('stranger')
  await keepOther(database, 'stranger', other)
  await other.end()
  const node = await cluster.start({ dataDir: kept, env: { ...nodeEnv, SERVICE_CLUSTER_NODE: nodeNames[0] } })
  await serves(node)
  const clients = new Clients(node.url)
  const earlier = await live(clients, node.url, database)
  await also(node.url)
  const known = {
    records: [...shared, ...clients.records],
    credentials: [...clients.credentials, former, stranger],
  }
  const truth = await look(node.url, known)
  await node.halt()
  await keep(database, LAST)
  return { known, truth, earlier, kept }
}

/** What clients of the cluster did before it was attacked. @returns what they were answered before they revoked and erased */
async function live(clients: Clients, url: string, database: Client): Promise<Answers> {
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
