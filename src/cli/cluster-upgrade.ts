import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { discardFilled, nameWithin } from '../data/backup/stores.js'
import { makeDirectory, readIfExists, writeDurably } from '../base/durable-file.js'
import { pooledRandom } from '../base/random.js'
import { openIdleDirectory } from '../data/directory.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { LEASE_MARGIN } from '../cluster/members/lease.js'
import { leaseMsOf } from '../cluster/members/node-report.js'
import { ClusterLogThread } from '../cluster/node/log-thread.js'
import { StorePool } from '../dispatch/pools/store-pool.js'
import { clusterFormat } from '../cluster/database/facts.js'
import { headsOf } from '../cluster/database/status.js'
import { fillTables, finishCluster } from '../cluster/database/create.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables } from '../cluster/database/statements.js'
import { describeDatabaseError } from '../cluster/database/database-errors.js'
import {
  dropNext,
  type FormerFacts,
  formerFacts,
  formerFormat,
  type FormerNode,
  formerNodes,
  nextStatements,
  replaceTables,
} from '../cluster/database/upgrade.js'
import { firstSegment } from '../../workers/store/replica/cluster-segment.js'
import { formatV1 } from '../../workers/store/replica/log-format-v1.js'
import { pull, type PulledCluster, readTarget } from './cluster-pull.js'
import { pushStores } from './cluster-push.js'
import {
  clusterSettingsOf,
  usageError,
  connectToDatabase,
  logLine,
  type SubcommandSettings,
} from './cluster-settings.js'
import { exitCodes } from './command.js'
import { startProgress } from './progress.js'

interface Upgrade {
  session: Session
  settings: SubcommandSettings
  facts: FormerFacts
  target: string
}

/** A file in the directory that an unfinished upgrade fills; it holds the id of the cluster. */
const markerFile = 'cluster-upgrade'
/** The maximum of SERVICE_CLUSTER_LEASE_SECS. */
const LEASE_MS_MAX = 600_000

/**
 * Upgrades the cluster of a database to the format of this version; all nodes must be stopped
 * (docs/CLUSTER.md). Copies the cluster to a directory, checks it, writes it to new tables and replaces the
 * former tables in one transaction. The directory remains as a backup. If interrupted, run it again.
 * @returns the exit code: 0 done, now or before; 1 a node runs, the cluster does not verify, or failed; 75
 * the database cannot be reached; 78 wrong usage or settings
 */
export async function clusterUpgradeCommand(args: string[]): Promise<number> {
  const target = readTarget(args)
  if (target === undefined) return usageError('Expected one DIR')
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const session = await connectToDatabase(settings.config)
  if (typeof session === 'number') return session
  try {
    const facts = await formerFacts(session)
    const fault = faultOf(facts, settings.masterSeed) ?? (facts && directoryFault(target, facts))
    if (facts === undefined || fault !== undefined) {
      logLine(fault ?? '')
      return exitCodes.configuration
    }
    // The last commit of an earlier attempt may not have reached the standbys: another commit after it
    // confirms that it has.
    if (facts.format === clusterFormat) await finishCluster(session, facts.id, rowKeyOf(settings.masterSeed))
    else printSummary(await upgrade({ session, settings, facts, target }), { facts, target })
    if (markerIn(target) === facts.id) rmSync(join(target, markerFile))
    process.stdout.write(
      `The cluster ${facts.id} has format ${clusterFormat}: nodes of this version may start\n`,
    )
    return exitCodes.fine
  } catch (error) {
    logLine(`The upgrade failed, run it again: ${describeDatabaseError(error)}`)
    return exitCodes.foundWrong
  } finally {
    session.drop()
  }
}

function faultOf(facts: FormerFacts | undefined, masterSeed: Buffer): string | undefined {
  if (facts === undefined) return 'The database holds no cluster'
  if (fingerprintOf(masterSeed) !== facts.seedFingerprint)
    return 'The master seed is not the one of the cluster'
  if (facts.format !== formerFormat && facts.format !== clusterFormat)
    return `The database holds a cluster of format ${facts.format}, and this version upgrades format ${formerFormat} only: use another version`
  return facts.ready
    ? undefined
    : 'The database holds an incomplete cluster: complete the push with the version that began it'
}

/**
 * @returns why a directory cannot be filled; undefined if it is new, empty, or left by an earlier attempt for
 * the same cluster
 */
function directoryFault(target: string, { id, format }: FormerFacts): string | undefined {
  if (format === clusterFormat) return undefined
  makeDirectory(target)
  const name = nameWithin(target, [markerFile])
  if (name === undefined || markerIn(target) === id) return undefined
  return `Expected ${target} to be absent or empty: it holds ${name}`
}

function markerIn(target: string): string | undefined {
  return readIfExists(join(target, markerFile))
}

async function upgrade({ session, settings, facts, target }: Upgrade): Promise<PulledCluster> {
  const nodes = await waitUntilStopped(session, 1_000 * settings.cluster.leaseSecs)
  const heads = await headsOf(session)
  if (heads.size !== facts.shards)
    throw new Error(`the cluster has ${facts.shards} shards, but logs of ${heads.size} shards`)
  writeDurably(join(target, markerFile), facts.id)
  discardFilled(target)
  const pulled = await pullFormer({ session, settings, facts, target })
  await pushNext({ session, settings, facts, target })
  await replaceTables(session, { id: facts.id, heads, nodes }, rowKeyOf(settings.masterSeed))
  return pulled
}

/**
 * Waits for longer than a lease if a node did not stop cleanly.
 * @returns all nodes.
 * @throws Error if one sent a heartbeat in that time
 */
async function waitUntilStopped(session: Session, leaseMs: number): Promise<FormerNode[]> {
  const before = await formerNodes(session)
  const alive = before.filter((node) => node.alive)
  if (alive.length === 0) return before
  const longestMs = Math.min(LEASE_MS_MAX, Math.max(leaseMs, ...alive.map(leaseMsOf)))
  const waitMs = LEASE_MARGIN * longestMs
  logLine(`Waiting for ${Math.ceil(waitMs / 1_000)} s: ${namesOf(alive)} did not stop cleanly`)
  await delay(waitMs)
  const nodes = await formerNodes(session)
  const heartbeats = new Map(before.map(({ node, heartbeat }) => [node, heartbeat]))
  const running = nodes.filter(({ node, heartbeat }) => heartbeats.get(node) !== heartbeat)
  if (running.length > 0)
    throw new Error(`nodes of the cluster are running (${namesOf(running)}): stop all of them`)
  return nodes
}

async function pullFormer({ session, settings, facts, target }: Upgrade): Promise<PulledCluster> {
  const { cluster, masterSeed } = settings
  const rows = { key: rowKeyOf(masterSeed), cluster: facts.id }
  const thread = new ClusterLogThread(
    { urls: [...cluster.urls], tables: clusterTables, rows, takeOverDelayMs: 0 },
    () => {},
  )
  const pool = new StorePool(false)
  const progress = startProgress()
  try {
    const work = { pool, show: progress.show, signal: new AbortController().signal }
    return await pull({ target, session, thread, facts, masterSeed, format: formatV1 }, work)
  } finally {
    progress.end()
    await thread.close()
    await pool.close()
  }
}

async function pushNext({ session, settings, facts, target }: Upgrade): Promise<void> {
  const opening = openIdleDirectory(target)
  if (!opening.ok) throw new Error(opening.detail)
  try {
    const { id, shards } = facts
    const { masterSeed } = settings
    const secret = { cluster: id, masterSeed, random: pooledRandom() }
    const first = Array.from({ length: shards }, (_none, shard) => firstSegment(shard, secret))
    await dropNext(session)
    const { format: _former, ...unchanged } = facts
    const cluster = { ...unchanged, ready: false }
    await fillTables({ session, statements: nextStatements }, { cluster, key: rowKeyOf(masterSeed) }, first)
    await pushStores(
      { path: target, shards, secret },
      { session, urls: settings.cluster.urls, statements: nextStatements },
    )
  } finally {
    opening.directory.close()
  }
}

function namesOf(nodes: readonly FormerNode[]): string {
  return nodes.map(({ node }) => node).join(', ')
}

function printSummary(
  { records, agents, headsRoot }: PulledCluster,
  { facts, target }: Pick<Upgrade, 'facts' | 'target'>,
) {
  const lines = [
    `Upgraded ${records} records of ${agents} agents of the cluster ${facts.id}; its former state is in ${target}`,
    `heads root  ${headsRoot}`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}
