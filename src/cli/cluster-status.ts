import { setTimeout as delay } from 'node:timers/promises'
import { isDirectoryOf } from '../data/cluster-origin.js'
import { rowKeyOf } from '../data/derived-keys.js'
import type { ClusterFacts } from '../cluster/database/facts.js'
import { factsOf } from '../cluster/database/make.js'
import { lossesIn } from '../cluster/database/loss.js'
import { NodeTable, type NodeRow, type RowFault } from '../cluster/database/nodes.js'
import {
  describeFaults,
  differences,
  leaseMsOf,
  type NodeTold,
  readTold,
} from '../cluster/members/settings-digest.js'
import { examineServer, type ServerFacts } from '../cluster/database/server-check.js'
import { Session } from '../cluster/database/session.js'
import { clusterTables, statementsOf } from '../cluster/database/statements.js'
import { readStanding, type ShardStanding, type ClusterState } from '../cluster/database/standing.js'
import { describeTrouble, UntrueRow } from '../cluster/database/trouble.js'
import { headerOf } from '../../workers/store/replica/cluster-segment.js'
import { clusterSettingsOf, clusterUsage, tell } from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { printable } from './printable.js'

/** By how much more than the pause between two beats it is waited for one. */
const PATIENCE = 1.5
const BEATS_PER_LEASE = 5

/**
 * Shows a cluster to a person: the database, the nodes, and the log of each shard.
 * @returns the exit code: 0 all is well; 1 something is not; 75 the database cannot be reached; 78 wrong usage or settings, or no
 * cluster
 */
export const clusterStatusCommand = command({
  usage: clusterUsage,
  options: {},
  read: () => ({}),
  run: showStatus,
})

async function showStatus(): Promise<number> {
  const settings = clusterSettingsOf()
  if (!settings.ok) return settings.exitCode
  let session: Session | undefined
  try {
    session = await Session.open(settings.cluster.urls)
    const key = rowKeyOf(settings.masterSeed)
    const facts = await factsOf(session, key)
    if (facts === undefined) {
      tell('The database holds no cluster: make one by strandfast cluster init, or cluster push')
      return exitCodes.configuration
    }
    return await show(session, {
      facts,
      key,
      leaseSecs: settings.cluster.leaseSecs,
      masterSeed: settings.masterSeed,
      dataDir: settings.config.dataDir,
    })
  } catch (error) {
    if (error instanceof UntrueRow) {
      process.stdout.write(`NOT WELL   The database of the cluster: ${error.message}\n`)
      return exitCodes.foundWrong
    }
    tell(`The database of the cluster cannot be used: ${describeTrouble(error)}`)
    return exitCodes.tryAgain
  } finally {
    session?.drop()
  }
}

/** A cluster as a look at it begins. */
interface Looked {
  facts: ClusterFacts
  /** Of the MACs of its rows. */
  key: Buffer
  leaseSecs: number
  masterSeed: Buffer
  /** Of a node, where this machine has one. */
  dataDir: string
}

async function show(session: Session, looked: Looked): Promise<number> {
  const { facts } = looked
  const server = await examineServer(session)
  const standing = await readStanding(session)
  const writers = standing.shards.map((shard) =>
    writerOf(shard, { cluster: facts.id, masterSeed: looked.masterSeed }),
  )
  const { nodes, faults } = await watched(session, looked)
  const troubles = [
    ...(facts.ready ? [] : ['The cluster is not whole: a push was cut off, or is under way']),
    ...(await lossesHere(session, looked)),
    ...troublesOfDatabase(server, standing),
    ...describeFaults(faults),
    ...troublesOfNodes(nodes),
    ...troublesOfShards(facts.shards, nodes),
    ...troublesOfLogs(facts.shards, standing.shards, writers),
  ]
  const made = new Date(facts.createdAtMs).toISOString()
  const lines = [
    `cluster    ${facts.id}, ${facts.shards} shards, made ${made}`,
    `database   PostgreSQL ${server.version}, ${describeSize(standing)}`,
    `standbys   ${describeStandbys(standing)}`,
    ...describeNodes(nodes),
    ...standing.shards.map((shard, at) => describeShard(shard, writers[at] ?? '', nodes)),
    ...troubles.map((trouble) => `NOT WELL   ${trouble}`),
    ...(troubles.length === 0 ? ['all is well'] : []),
  ]
  process.stdout.write(`${lines.map(printable).join('\n')}\n`)
  return troubles.length === 0 ? exitCodes.fine : exitCodes.foundWrong
}

/** What the log lacks of what the data directory knows, where it is that of a node. */
async function lossesHere(session: Session, { facts, dataDir }: Looked): Promise<string[]> {
  if (!isDirectoryOf(dataDir, facts.id)) return []
  const found = await lossesIn(dataDir, {
    session,
    statements: statementsOf(clusterTables),
    shards: facts.shards,
  })
  return found.map((loss) => `The data directory ${dataDir}: ${loss}`)
}

function troublesOfDatabase({ faults, replicated }: ServerFacts, { standbys }: ClusterState): string[] {
  const waits = standbys?.every(({ state }) => state !== 'sync' && state !== 'quorum') === true
  return [
    ...faults.map((fault) => `The database: ${fault}`),
    ...(replicated ? [] : ['No commit waits for a standby: what is answered is lost with one disk']),
    ...(replicated && waits
      ? [
          'No synchronous standby is connected to the database: commits wait until one is, and nothing is answered',
        ]
      : []),
  ]
}

function troublesOfNodes(nodes: readonly Watched[]): string[] {
  const alive = nodes.filter(({ state }) => state === 'alive')
  const serving = alive.filter(({ told }) => told.servesSinceMs !== undefined)
  const troubles = nodes
    .filter(({ state }) => state === 'silent')
    .map(
      ({ row: { node, address } }) =>
        `The node ${node} on ${address} is silent: it died, or cannot reach the database`,
    )
  for (const { row, told } of alive)
    if (told.refuses !== undefined) troubles.push(`The node ${row.node} refuses to serve: ${told.refuses}`)
  if (alive.length === 0) troubles.push('No node is alive')
  else if (serving.length === 0)
    troubles.push('No node serves: one of those that are alive takes over after a lease')
  const behind = alive.filter(({ row, told }) => (told.lagSecs ?? 0) * 1_000 > leaseMsOf(row))
  for (const { row, told } of behind)
    troubles.push(`The node ${row.node} is ${secsText(told.lagSecs)} behind: a failover to it takes longer`)
  return [...troubles, ...differences(alive.map(({ row }) => row))]
}

/** Who has a shard, as the nodes that are alive say. */
function holdersOf(
  shard: number,
  nodes: readonly Watched[],
): { owner: string | undefined; copies: string[] } {
  const alive = nodes.filter(({ state }) => state === 'alive')
  const owner = alive.find(({ told }) => told.owned?.includes(shard) === true)?.row.node
  const copies = alive.filter(({ row, told }) => row.node !== owner && told.held?.includes(shard) === true)
  return { owner, copies: copies.map(({ row }) => row.node) }
}

/** Nobody owns a shard although somebody is alive. */
function troublesOfShards(shards: number, nodes: readonly Watched[]): string[] {
  const isAnyServing = nodes.some(({ state, told }) => state === 'alive' && told.servesSinceMs !== undefined)
  if (!isAnyServing) return []
  const free = Array.from({ length: shards }, (_none, shard) => shard).filter(
    (shard) => holdersOf(shard, nodes).owner === undefined,
  )
  if (free.length === 0) return []
  return [
    `No node owns ${free.length === 1 ? 'shard' : 'shards'} ${free.join(', ')}: one takes over after a lease`,
  ]
}

/** Who wrote the last segment of a shard: nobody yet in a new cluster. @returns undefined where that does not verify */
function writerOf(
  { segment, last }: ShardStanding,
  keys: Parameters<typeof headerOf>[1],
): string | undefined {
  try {
    return headerOf({ segment, ...last }, keys).writer.node
  } catch {
    return undefined
  }
}

/** Logs that are not there, and those whose last segment is none of this cluster's. */
function troublesOfLogs(
  shards: number,
  logs: readonly ShardStanding[],
  writers: readonly (string | undefined)[],
): string[] {
  const untrue = logs.filter((log, at) => writers[at] === undefined || log.shard >= shards)
  return [
    ...Array.from({ length: shards }, (_none, shard) => shard)
      .filter((shard) => !logs.some((log) => log.shard === shard))
      .map((shard) => `The log of shard ${shard} is not there`),
    ...untrue.map(
      ({ shard, segment }) =>
        `Segment ${segment} of shard ${shard} does not verify: it was changed, or written without the master seed`,
    ),
  ]
}

interface Watched {
  row: NodeRow
  told: NodeTold
  state: 'alive' | 'silent' | 'stopped'
}

/** The nodes whose rows verify, and which of them beat; and what is wrong with the other rows. */
async function watched(
  session: Session,
  { facts, key, leaseSecs }: Looked,
): Promise<{ nodes: Watched[]; faults: RowFault[] }> {
  const secret = { key, cluster: facts.id }
  const table = new NodeTable(session, statementsOf(clusterTables), { secret })
  const before = await table.all()
  const isAnyAlive = before.members.some(({ alive }) => alive)
  if (isAnyAlive) await delay(((leaseSecs * 1_000) / BEATS_PER_LEASE) * PATIENCE)
  const { members, faults } = isAnyAlive ? await table.all() : before
  const nodes = members.map((row): Watched => {
    const first = before.members.find(({ node }) => node === row.node)
    const beats = first?.beat !== row.beat || first.incarnation !== row.incarnation
    return { row, told: readTold(row), state: row.alive ? (beats ? 'alive' : 'silent') : 'stopped' }
  })
  return { nodes, faults }
}

function describeSize({ bytes }: ClusterState): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB in its tables`
}

function describeStandbys({ standbys }: ClusterState): string {
  if (standbys === undefined) return 'unknown: the role may not see them (GRANT pg_monitor shows them)'
  if (standbys.length === 0) return 'none connected'
  return standbys.map(({ name, state }) => `${name} (${state})`).join(', ')
}

function describeNodes(nodes: readonly Watched[]): string[] {
  if (nodes.length === 0) return ['node       none has ever joined']
  const width = Math.max(...nodes.map(({ row }) => row.node.length))
  return nodes.map((one) => `node       ${one.row.node.padEnd(width)}  ${describeNode(one)}`)
}

function describeNode({ row, told, state }: Watched): string {
  if (state === 'stopped') return `stopped, was on ${row.address}`
  if (state === 'silent') return `SILENT, was on ${row.address}`
  const { servesSinceMs: since, owned = [], held = [], lagSecs, version, refuses } = told
  const where = `on ${row.address}, version ${version}, joined ${new Date(row.incarnation).toISOString()}, lease ${leaseMsOf(row) / 1_000} s`
  if (refuses !== undefined) return `REFUSES to serve, ${where}`
  const copies = held.length - owned.length
  const kept =
    lagSecs === undefined ? '' : `, ${plural(copies, 'copy', 'copies')}, ${secsText(lagSecs)} behind`
  if (since !== undefined)
    return `SERVES ${plural(owned.length, 'shard')} since ${new Date(since).toISOString()}${kept}, ${where}`
  return lagSecs === undefined ? `starting, ${where}` : `stands by${kept}, ${where}`
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function secsText(secs = 0): string {
  return `${secs.toFixed(1)} s`
}

function describeShard(
  { shard, segment, checkpoint, stateBytes }: ShardStanding,
  node: string,
  nodes: readonly Watched[],
): string {
  const by = node === '' ? 'by nobody yet' : `by ${node}`
  const { owner, copies } = holdersOf(shard, nodes)
  const held = [
    `owned by ${owner ?? 'nobody'}`,
    ...(copies.length === 0 ? [] : [`copies at ${copies.join(', ')}`]),
  ]
  const kept = checkpoint === undefined ? 'no checkpoint' : `checkpoint at ${checkpoint}`
  const since = `${(stateBytes / 1_048_576).toFixed(1)} MiB of sealed rows since`
  return `shard ${String(shard).padEnd(4)} ${held.join(', ')}; segment ${segment}, written ${by}; ${kept}, ${since}`
}
