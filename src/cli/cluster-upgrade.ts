import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { discardFilled, nameWithin } from '../data/backup/stores.js'
import { makeDirectory, readIfThere, writeDurably } from '../base/durable-file.js'
import { pooledRandom } from '../base/random.js'
import { openIdleDirectory } from '../data/directory.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { leaseMsOf } from '../cluster/members/settings-digest.js'
import { ClusterLogThread } from '../cluster/node/log-thread.js'
import { StorePool } from '../dispatch/pools/store-pool.js'
import { clusterFormat } from '../cluster/database/facts.js'
import { headsOf } from '../cluster/database/standing.js'
import { fillTables, finishCluster } from '../cluster/database/make.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables } from '../cluster/database/statements.js'
import { describeTrouble } from '../cluster/database/trouble.js'
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
import { formerForm } from '../../workers/store/replica/former-form.js'
import { pull, type PulledCluster, readTarget } from './cluster-pull.js'
import { pushStores } from './cluster-push.js'
import { clusterSettingsOf, misused, reach, tell, type UsableSettings } from './cluster-settings.js'
import { exitCodes } from './command.js'
import { startProgress } from './progress.js'

/** What an upgrade works with. */
interface Upgrade {
  session: Session
  settings: UsableSettings
  facts: FormerFacts
  target: string
}

/** The file in a directory that an upgrade fills; it holds the id of the cluster, until that is done. */
const markerFile = 'cluster-upgrade'
/** As for nodes: others wait for a tenth more than a lease. */
const PATIENCE = 1.1
/** The longest lease that SERVICE_CLUSTER_LEASE_SECS may say. */
const LEASE_MS_MAX = 600_000

/**
 * Brings the cluster of a database to the format of this version, all nodes stopped (docs/CLUSTER.md). It is read and
 * checked into a directory, which stays as a copy, and written to new tables, which take the place of the former ones in one
 * transaction. Cut off at any moment, it is done by being run again.
 * @returns the exit code: 0 done, or done before; 1 a node runs, the cluster does not verify, or failed; 75 the database cannot be
 * reached; 78 wrong usage or settings
 */
export async function clusterUpgradeCommand(args: string[]): Promise<number> {
  const target = readTarget(args)
  if (target === undefined) return misused('Expected one DIR')
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const session = await reach(settings.config)
  if (typeof session === 'number') return session
  try {
    const facts = await formerFacts(session)
    const fault = faultOf(facts, settings.masterSeed) ?? (facts && directoryFault(target, facts))
    if (facts === undefined || fault !== undefined) {
      tell(fault ?? '')
      return exitCodes.configuration
    }
    // An attempt whose last commit may have been lost is confirmed by another one.
    if (facts.format === clusterFormat) await finishCluster(session, facts.id, rowKeyOf(settings.masterSeed))
    else tellDone(await upgrade({ session, settings, facts, target }), { facts, target })
    if (markerIn(target) === facts.id) rmSync(join(target, markerFile))
    process.stdout.write(
      `The cluster ${facts.id} has format ${clusterFormat}: nodes of this version may start\n`,
    )
    return exitCodes.fine
  } catch (error) {
    tell(`Not done, run it again: ${describeTrouble(error)}`)
    return exitCodes.foundWrong
  } finally {
    session.drop()
  }
}

function faultOf(facts: FormerFacts | undefined, masterSeed: Buffer): string | undefined {
  if (facts === undefined) return 'The database holds no cluster'
  if (fingerprintOf(masterSeed) !== facts.seedFingerprint)
    return 'The master seed given is not that of the cluster'
  if (facts.format !== formerFormat && facts.format !== clusterFormat)
    return `The database holds a cluster of format ${facts.format}, and this program upgrades format ${formerFormat}: use another version`
  return facts.ready
    ? undefined
    : 'The database holds a cluster that is not whole: complete its push by the version that began it'
}

/** Why a directory cannot be filled: one that an attempt of the same cluster has left can. */
function directoryFault(target: string, { id, format }: FormerFacts): string | undefined {
  if (format === clusterFormat) return undefined
  makeDirectory(target)
  const name = nameWithin(target, [markerFile])
  if (name === undefined || markerIn(target) === id) return undefined
  return `Expected ${target} to be absent or empty: it holds ${name}`
}

function markerIn(target: string): string | undefined {
  return readIfThere(join(target, markerFile))
}

async function upgrade({ session, settings, facts, target }: Upgrade): Promise<PulledCluster> {
  const nodes = await stopped(session, 1_000 * settings.cluster.leaseSecs)
  const heads = await headsOf(session)
  if (heads.size !== facts.shards)
    throw new Error(`its row names ${facts.shards} shards, and it has logs of ${heads.size}`)
  writeDurably(join(target, markerFile), facts.id)
  discardFilled(target)
  const pulled = await pullFormer({ session, settings, facts, target })
  await pushNext({ session, settings, facts, target })
  await replaceTables(session, { id: facts.id, heads, nodes }, rowKeyOf(settings.masterSeed))
  return pulled
}

/** The nodes, once none of those that are alive by their rows has sent a heartbeat for longer than a lease. */
async function stopped(session: Session, leaseMs: number): Promise<FormerNode[]> {
  const before = await formerNodes(session)
  const alive = before.filter((node) => node.alive)
  if (alive.length === 0) return before
  const longestMs = Math.min(LEASE_MS_MAX, Math.max(leaseMs, ...alive.map(leaseMsOf)))
  tell(`Waiting for ${Math.ceil((PATIENCE * longestMs) / 1_000)} s: ${namesOf(alive)} did not stop in order`)
  await delay(PATIENCE * longestMs)
  const nodes = await formerNodes(session)
  const seen = new Map(before.map(({ node, beat }) => [node, beat]))
  const running = nodes.filter(({ node, beat }) => seen.get(node) !== beat)
  if (running.length > 0) throw new Error(`nodes of the cluster run (${namesOf(running)}): stop all of them`)
  return nodes
}

async function pullFormer({ session, settings, facts, target }: Upgrade): Promise<PulledCluster> {
  const { cluster, masterSeed } = settings
  const rows = { key: rowKeyOf(masterSeed), cluster: facts.id }
  const thread = new ClusterLogThread(
    { urls: [...cluster.urls], tables: clusterTables, rows, patienceMs: 0 },
    () => {},
  )
  const pool = new StorePool(false)
  const progress = startProgress()
  try {
    const work = { pool, show: progress.show, signal: new AbortController().signal }
    return await pull({ target, session, thread, facts, masterSeed, form: formerForm }, work)
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
    const { format: _former, ...same } = facts
    const cluster = { ...same, ready: false }
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

function tellDone(
  { records, agents, headsRoot }: PulledCluster,
  { facts, target }: Pick<Upgrade, 'facts' | 'target'>,
) {
  const lines = [
    `UPGRADED ${records} records of ${agents} agents of the cluster ${facts.id}, which is in ${target} as it was`,
    `heads root  ${headsRoot}`,
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}
