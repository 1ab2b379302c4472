import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkStores, discardFilled, nameWithin, type StoreWork } from '../data/backup/stores.js'
import { eraAfter } from '../data/backup/restore.js'
import { systemClock } from '../base/clock.js'
import { makeDirectory, syncDirectory } from '../base/durable-file.js'
import { pooledRandom } from '../base/random.js'
import { version } from '../base/version.js'
import { type Format, writeFormat } from '../data/format.js'
import { leaveRestoredMarker } from '../data/restored-marker.js'
import { rowKeyOf, fingerprintOf } from '../data/derived-keys.js'
import { shardFolder } from '../data/shard-folders.js'
import { ClusterLogThread } from '../cluster/node/log-thread.js'
import { StorePool } from '../dispatch/pools/store-pool.js'
import type { ClusterFacts } from '../cluster/database/facts.js'
import { headsOf } from '../cluster/database/standing.js'
import { factsOf } from '../cluster/database/make.js'
import type { Session } from '../cluster/database/session.js'
import { clusterTables } from '../cluster/database/statements.js'
import { describeTrouble, isOther } from '../cluster/database/trouble.js'
import { ErasedLater } from '../../workers/store/log/record-check.js'
import type { LogForm } from '../../workers/store/replica/cluster-reader.js'
import { pullStore } from '../../workers/store/replica/node-store.js'
import { path } from '../settings/parsers.js'
import { parseOnce, exitCodes } from './command.js'
import { clusterSettingsOf, misused, reach, tell } from './cluster-settings.js'
import { startProgress } from './progress.js'

/** How often it is begun again where checkpoints are made, or bodies erased, while it reads. */
const TRIES = 3

/**
 * Makes a data directory of its own of a cluster, as it is at one moment, whether nodes run or not (docs/CLUSTER.md).
 * @returns the exit code: 0 made; 1 the cluster does not verify, or failed; 75 the database cannot be reached; 78 wrong usage or
 * settings
 */
export async function clusterPullCommand(args: string[]): Promise<number> {
  const target = readTarget(args)
  if (target === undefined) return misused('Expected one DIR')
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  const { config, masterSeed } = settings
  const session = await reach(config)
  if (typeof session === 'number') return session
  const pool = new StorePool(false)
  let thread: ClusterLogThread | undefined
  const progress = startProgress()
  let made = false
  let isFilling = false
  try {
    const facts = await usableFacts(session, masterSeed)
    if (typeof facts === 'string') {
      tell(facts)
      return exitCodes.configuration
    }
    made = makeDirectory(target)
    const name = nameWithin(target)
    if (name !== undefined) {
      tell(`Expected ${target} to be absent or empty: it holds ${name}`)
      return exitCodes.configuration
    }
    isFilling = true
    const work = { pool, show: progress.show, signal: new AbortController().signal }
    const rows = { key: rowKeyOf(masterSeed), cluster: facts.id }
    thread = new ClusterLogThread(
      { urls: [...settings.cluster.urls], tables: clusterTables, rows, patienceMs: 0 },
      () => {},
    )
    const { records, agents, headsRoot } = await pull({ target, session, thread, facts, masterSeed }, work)
    progress.end()
    const lines = [
      `PULLED ${records} records of ${agents} agents of the cluster ${facts.id} to ${target}`,
      `heads root  ${headsRoot}`,
      'secrets     none: a server on it wants SERVICE_MASTER_SEED, and no SERVICE_CLUSTER_URL',
    ]
    process.stdout.write(`${lines.join('\n')}\n`)
    isFilling = false
    return exitCodes.fine
  } catch (error) {
    progress.end()
    tell(`The pull failed, and nothing is left of it: ${describeTrouble(error)}`)
    return exitCodes.foundWrong
  } finally {
    if (isFilling && made) rmSync(target, { recursive: true, force: true })
    else if (isFilling) discardFilled(target)
    session.drop()
    await thread?.close()
    await pool.close()
  }
}

/** What a pull works with. */
export interface Pull {
  target: string
  session: Session
  thread: ClusterLogThread
  facts: Omit<ClusterFacts, 'revision'>
  masterSeed: Buffer
  /** The form of the logs; that of nodes when absent. */
  form?: LogForm
}

/** What was pulled. */
export interface PulledCluster {
  records: number
  agents: number
  /** Over the heads of all strands, 64 hex digits. */
  headsRoot: string
}

/** The one directory that a subcommand is given. */
export function readTarget(args: string[]): string | undefined {
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
    facts = await factsOf(session, rowKeyOf(masterSeed))
  } catch (error) {
    if (isOther(error)) return `The database: ${error.message}`
    throw error
  }
  if (facts === undefined) return 'The database holds no cluster'
  if (!facts.ready)
    return 'The database holds a cluster that is not whole: a push was cut off, or is under way'
  if (fingerprintOf(masterSeed) !== facts.seedFingerprint)
    return 'The master seed given is not that of the cluster'
  return facts
}

/** Makes a data directory of a cluster, and checks every strand of it. @throws Error where one does not verify */
export async function pull(asked: Pull, work: StoreWork): Promise<PulledCluster> {
  const { target, facts } = asked
  const nowMs = systemClock()
  await pullStores(asked, work)
  const paths = numbersTo(facts.shards).map((shard) => shardFolder(target, shard))
  const { checks, headsRoot, faults } = await checkStores(paths, 0, work)
  if (faults.length > 0) throw new Error(faults.join('; '))
  const from = { created_at_ms: nowMs, version, heads_root: headsRoot }
  leaveRestoredMarker(target, from, nowMs)
  for (const path of paths) syncDirectory(path)
  const { seedFingerprint: masterSeedFingerprint, createdAtMs, shards, layout } = facts
  // Tokens of the cluster are none of the directory's: what was revoked there afterwards would be valid here.
  const tokenEra = eraAfter(facts.tokenEra, pooledRandom())
  const fixed = { switching: false, hasLog: true }
  const format: Format = { masterSeedFingerprint, createdAtMs, shards, layout, tokenEra, ...fixed }
  writeFormat(target, format)
  syncDirectory(join(target, '..'))
  const sum = (name: 'records' | 'agents') => checks.reduce((all, check) => all + check[name], 0)
  return { records: sum('records'), agents: sum('agents'), headsRoot }
}

/** Makes all stores, as they were at one moment. */
async function pullStores({ target, session, thread, facts, masterSeed, form }: Pull, work: StoreWork) {
  const secret = { cluster: facts.id, masterSeed, random: pooledRandom() }
  for (let tries = 0; tries < TRIES; tries++) {
    const heads = await headsOf(session)
    let done = 0
    work.show({ doing: 'read', unit: 'stores', state: () => ({ done, total: facts.shards }) })
    for (const shard of numbersTo(facts.shards)) {
      const upTo = heads.get(shard)
      if (upTo === undefined) throw new Error(`it has no log of shard ${shard}`)
      const line = thread.lineOf(shard)
      const isMade = await pullStore({ path: shardFolder(target, shard), upTo, line, secret, form }).catch(
        (error: unknown) => {
          // A body that was erased in between is missing, and its erasure lies behind the last segment that is read.
          if (error instanceof ErasedLater && tries < TRIES - 1) return false
          throw error
        },
      )
      if (!isMade) break
      done += 1
    }
    if (done === facts.shards) return
    for (const shard of numbersTo(facts.shards))
      rmSync(shardFolder(target, shard), { recursive: true, force: true })
  }
  throw new Error('checkpoints are made all the time: try again later')
}

function numbersTo(count: number): number[] {
  return Array.from({ length: count }, (_none, number) => number)
}
