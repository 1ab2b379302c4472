import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkStores, discardFilled, nameWithin, type StoreWork } from '../data/backup/stores.js'
import { eraAfter } from '../data/backup/restore.js'
import { systemClock } from '../base/clock.js'
import { makeDirectory, syncDirectory } from '../base/durable-file.js'
import { pooledRandom } from '../base/random.js'
import { version } from '../base/version.js'
import { type Format, writeFormat } from '../data/format.js'
import { writeRestoredMarker } from '../data/restored-marker.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { shardFolder } from '../data/shard-folders.js'
import { ClusterLogThread } from '../cluster/node/log-thread.js'
import { StorePool } from '../dispatch/pools/store-pool.js'
import type { ClusterFacts } from '../cluster/database/facts.js'
import { headsOf } from '../cluster/database/status.js'
import { readClusterFacts } from '../cluster/database/create.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables } from '../cluster/database/statements.js'
import { describeDatabaseError, isForeign } from '../cluster/database/database-errors.js'
import { detachStore, pullStore } from '../../workers/store/replica/node-store.js'
import { path } from '../settings/parsers.js'
import { parseOnce, exitCodes } from './command.js'
import { clusterSettingsOf, usageError, connectToDatabase, refuse } from './cluster-settings.js'
import { startProgress } from './progress.js'

/**
 * How often the logs are read up to a common moment. Each time reads only what was written since the last,
 * so that the second or third succeeds unless records are erased as soon as they are written.
 */
const ROUNDS_MAX = 100

/**
 * Copies a cluster, as of one moment, into a standalone data directory; nodes may run (docs/CLUSTER.md).
 * @returns the exit code: 0 copied; 1 the cluster does not verify, or failed; 75 the database cannot be
 * reached; 78 wrong usage or settings
 */
export async function clusterPullCommand(args: string[]): Promise<number> {
  const target = readTarget(args)
  if (target === undefined) return usageError('Expected one DIR')
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const { config, masterSeed } = settings
  const session = await connectToDatabase(config, 'read')
  if (typeof session === 'number') return session
  const pool = new StorePool(false)
  let thread: ClusterLogThread | undefined
  const progress = startProgress()
  let isTargetNew = false
  let isFilling = false
  try {
    const facts = await usableFacts(session, masterSeed)
    if (typeof facts === 'string') return refuse(facts)
    isTargetNew = makeDirectory(target)
    const name = nameWithin(target)
    if (name !== undefined) return refuse(`Expected ${target} to be absent or empty: it holds ${name}`)
    isFilling = true
    const work = { pool, show: progress.show, signal: new AbortController().signal }
    const rows = { key: rowKeyOf(masterSeed), cluster: facts.id }
    thread = new ClusterLogThread(
      { urls: [...settings.cluster.urls], tables: clusterTables, rows, takeOverDelayMs: 0 },
      () => {},
    )
    const { records, agents, headsRoot } = await pull({ target, session, thread, facts, masterSeed }, work)
    progress.end()
    const lines = [
      `Pulled ${records} records of ${agents} agents of the cluster ${facts.id} to ${target}`,
      `heads root  ${headsRoot}`,
      'secrets     none: to serve this directory, set SERVICE_MASTER_SEED and unset SERVICE_CLUSTER_URL',
    ]
    process.stdout.write(`${lines.join('\n')}\n`)
    isFilling = false
    return exitCodes.fine
  } catch (error) {
    progress.end()
    const reason = describeDatabaseError(error)
    return refuse(`The pull failed and its files were removed: ${reason}`, exitCodes.foundWrong)
  } finally {
    if (isFilling && isTargetNew) rmSync(target, { recursive: true, force: true })
    else if (isFilling) discardFilled(target)
    session.drop()
    await thread?.close()
    await pool.close()
  }
}

interface PullOptions {
  target: string
  session: Session
  thread: ClusterLogThread
  facts: ClusterFacts
  masterSeed: Buffer
}

interface PulledCluster {
  records: number
  agents: number
  /** Merkle root over the heads of all strands, 64 hex digits. */
  headsRoot: string
}

/** @returns the absolute path of the one directory in the arguments; undefined if they are anything else */
function readTarget(args: string[]): string | undefined {
  try {
    const { positionals } = parseOnce({ args, allowPositionals: true })
    const [target, ...more] = positionals
    return target === undefined || more.length > 0 ? undefined : path(target)
  } catch {
    return undefined
  }
}

async function usableFacts(session: Session, masterSeed: Buffer): Promise<ClusterFacts | string> {
  let facts: ClusterFacts | undefined
  try {
    facts = await readClusterFacts(session, rowKeyOf(masterSeed))
  } catch (error) {
    if (isForeign(error)) return `The database cannot be used: ${error.message}`
    throw error
  }
  if (facts === undefined) return 'The database holds no cluster'
  if (!facts.ready) return 'The database holds an incomplete cluster: a push was interrupted, or is running'
  if (fingerprintOf(masterSeed) !== facts.seedFingerprint)
    return 'The master seed is not the one of the cluster'
  return facts
}

/**
 * Copies a cluster into a data directory and checks every strand of the copy.
 * @throws Error if a strand does not verify
 */
async function pull(request: PullOptions, work: StoreWork): Promise<PulledCluster> {
  const { target, facts } = request
  const nowMs = systemClock()
  await pullStores(request, work)
  const paths = shardNumbers(facts.shards).map((shard) => shardFolder(target, shard))
  for (const path of paths) await detachStore(path)
  const { checks, headsRoot, faults } = await checkStores(paths, 0, work)
  if (faults.length > 0) throw new Error(faults.join('; '))
  const from = { created_at_ms: nowMs, version, heads_root: headsRoot }
  writeRestoredMarker(target, from, nowMs)
  for (const path of paths) syncDirectory(path)
  const { seedFingerprint: masterSeedFingerprint, createdAtMs, shards, layout } = facts
  // A new era invalidates the tokens of the cluster: the copy would not learn of later revocations.
  const tokenEra = eraAfter(facts.tokenEra, pooledRandom())
  const format: Format = { masterSeedFingerprint, createdAtMs, shards, layout, tokenEra, switching: false }
  writeFormat(target, format)
  syncDirectory(join(target, '..'))
  const sum = (name: 'records' | 'agents') => checks.reduce((all, check) => all + check[name], 0)
  return { records: sum('records'), agents: sum('agents'), headsRoot }
}

/**
 * Copies all stores, as of one moment. No transaction is open in the meantime, which would stop the vacuum of
 * the database for hours. So a body may be erased, or a checkpoint written, after the moment and before the
 * reading: then that store is read beyond the moment, and all stores up to a later one.
 */
async function pullStores({ target, session, thread, facts, masterSeed }: PullOptions, work: StoreWork) {
  const secret = { cluster: facts.id, masterSeed, random: pooledRandom() }
  const read = new Map<number, number>()
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const heads = await headsOf(session)
    let done = 0
    work.show({ doing: 'read', unit: 'stores', state: () => ({ done, total: facts.shards }) })
    for (const shard of shardNumbers(facts.shards)) {
      const upTo = heads.get(shard)
      if (upTo === undefined) throw new Error(`the log of shard ${shard} is missing`)
      if (read.get(shard) !== upTo) {
        const options = { path: shardFolder(target, shard), channel: thread.channelOf(shard), secret }
        read.set(shard, await pullStore({ ...options, upTo }))
      }
      done += 1
    }
    if (shardNumbers(facts.shards).every((shard) => read.get(shard) === heads.get(shard))) return
  }
  throw new Error('records were erased as soon as they were written while they were read: try again later')
}

function shardNumbers(count: number): number[] {
  return Array.from({ length: count }, (_none, number) => number)
}
