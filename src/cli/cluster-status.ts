import { setTimeout as delay } from 'node:timers/promises'
import { isDirectoryOf } from '../data/cluster-origin.js'
import { rowKeyOf } from '../data/derived-keys.js'
import type { ClusterFacts } from '../cluster/database/facts.js'
import { readClusterFacts } from '../cluster/database/create.js'
import { findLosses } from '../cluster/database/loss.js'
import { NodeTable } from '../cluster/database/nodes.js'
import { HEARTBEATS_PER_LEASE } from '../cluster/members/lease.js'
import type { Member, RowFault } from '../cluster/members/member.js'
import {
  describeFaults,
  differences,
  leaseMsOf,
  nodeProblems,
  type NodeReport,
  decodeReport,
} from '../cluster/members/node-report.js'
import { examineServer, type ServerFacts } from '../cluster/database/server-check.js'
import { Session } from '../cluster/database/session.js'
import { clusterTables, statementsOf } from '../cluster/database/statements.js'
import { examineTables, type TableFaults } from '../cluster/database/tables.js'
import { readClusterStatus, type ShardLogStatus, type ClusterStatus } from '../cluster/database/status.js'
import { describeDatabaseError, UnverifiedRow } from '../cluster/database/database-errors.js'
import { decodeHeader } from '../../workers/store/replica/cluster-segment.js'
import { clusterSettingsOf, clusterUsage, refuse } from './cluster-settings.js'
import { command, exitCodes } from './command.js'
import { printable } from './printable.js'

/** How long to wait for a heartbeat, in intervals between heartbeats. */
const HEARTBEAT_INTERVALS = 1.5

/**
 * Prints the state of a cluster: the database, the nodes, and the log of each shard.
 * @returns the exit code: 0 no problem; 1 at least one problem; 75 the database cannot be reached or
 * used; 78 wrong usage or settings, or no cluster
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
  let tables: TableFaults | undefined
  try {
    session = await Session.open(settings.cluster.urls)
    tables = await examineTables(session, clusterTables)
    const key = rowKeyOf(settings.masterSeed)
    const facts = await readClusterFacts(session, key)
    if (facts === undefined)
      return refuse('The database holds no cluster: create one with strandfast cluster init or cluster push')
    return await show(session, {
      facts,
      tables,
      key,
      leaseSecs: settings.cluster.leaseSecs,
      masterSeed: settings.masterSeed,
      dataDir: settings.config.dataDir,
    })
  } catch (error) {
    // Wrong tables are the likely cause of any other error.
    const wrong = error instanceof UnverifiedRow ? [error.message] : (tables?.wrong ?? [])
    if (wrong.length > 0) {
      for (const fault of wrong) process.stdout.write(`PROBLEM    The database of the cluster: ${fault}\n`)
      return exitCodes.foundWrong
    }
    const reason = describeDatabaseError(error)
    return refuse(`The database of the cluster cannot be used: ${reason}`, exitCodes.tryAgain)
  } finally {
    session?.drop()
  }
}

interface StatusRequest {
  facts: ClusterFacts
  /** How its tables differ from what was created. */
  tables: TableFaults
  /** The key of the MACs of the cluster's rows. */
  key: Buffer
  leaseSecs: number
  masterSeed: Buffer
  /** The data directory of the settings, which may belong to a node of the cluster. */
  dataDir: string
}

async function show(session: Session, request: StatusRequest): Promise<number> {
  const { facts, tables } = request
  const server = examineServer(session)
  const status = await readClusterStatus(session)
  const writers = status.shards.map((shard) =>
    writerOf(shard, { cluster: facts.id, masterSeed: request.masterSeed }),
  )
  const { nodes, faults } = await observeNodes(session, request)
  const problems = [
    ...(facts.ready ? [] : ['The cluster is incomplete: a push was interrupted, or is running']),
    ...(await localLosses(session, request)),
    ...databaseProblems(
      { ...server, faults: [...server.faults, ...tables.missing, ...tables.wrong] },
      status,
    ),
    ...describeFaults(faults),
    ...problemsOf(nodes),
    ...shardProblems(facts.shards, nodes),
    ...logProblems(facts.shards, status.shards, writers),
  ]
  const createdAt = new Date(facts.createdAtMs).toISOString()
  const lines = [
    `cluster    ${facts.id}, ${facts.shards} shards, created ${createdAt}`,
    `database   PostgreSQL ${server.version}, ${describeSize(status)}`,
    `standbys   ${describeStandbys(status)}`,
    ...describeNodes(nodes),
    ...status.shards.map((shard, index) => describeShard(shard, writers[index] ?? '', nodes)),
    ...problems.map((problem) => `PROBLEM    ${problem}`),
    ...(problems.length === 0 ? ['no problem found'] : []),
  ]
  process.stdout.write(`${lines.map(printable).join('\n')}\n`)
  return problems.length === 0 ? exitCodes.fine : exitCodes.foundWrong
}

/** Durable segments that the log has lost, as far as the data directory of a node on this machine knows. */
async function localLosses(session: Session, { facts, dataDir }: StatusRequest): Promise<string[]> {
  if (!isDirectoryOf(dataDir, facts.id)) return []
  const losses = await findLosses(dataDir, {
    session,
    statements: statementsOf(clusterTables),
    shards: facts.shards,
  })
  return losses.map((loss) => `The data directory ${dataDir}: ${loss}`)
}

function databaseProblems({ faults, replicated }: ServerFacts, { standbys }: ClusterStatus): string[] {
  const isBlocked = standbys?.every(({ state }) => state !== 'sync' && state !== 'quorum') === true
  return [
    ...faults.map((fault) => `The database: ${fault}`),
    ...(replicated ? [] : ['No commit waits for a standby: acknowledged records are lost if one disk fails']),
    ...(replicated && isBlocked
      ? [
          'No synchronous standby is connected to the database: commits wait until one connects, and so do requests',
        ]
      : []),
  ]
}

function problemsOf(nodes: readonly ObservedNode[]): string[] {
  const alive = nodes.filter(({ state }) => state === 'alive')
  const serving = alive.filter(({ report }) => report.servesSinceMs !== undefined)
  const problems = nodes
    .filter(({ state }) => state === 'unresponsive')
    .map(
      ({ row: { node, address } }) =>
        `The node ${node} on ${address} sends no heartbeats: it has died, or cannot reach the database`,
    )
  problems.push(...nodeProblems(alive.map(({ row }) => row)))
  if (alive.length === 0) problems.push('No node is alive')
  else if (serving.length === 0)
    problems.push('No node serves: a live node takes over when the lease has expired')
  const behind = alive.filter(({ row, report }) => (report.lagSecs ?? 0) * 1_000 > leaseMsOf(row))
  for (const { row, report } of behind)
    problems.push(`The node ${row.node} is ${secsText(report.lagSecs)} behind: a failover to it takes longer`)
  return [...problems, ...differences(alive.map(({ row }) => row))]
}

/** The owner of a shard and the nodes with copies, according to the reports of live nodes. */
function holdersOf(
  shard: number,
  nodes: readonly ObservedNode[],
): { owner: string | undefined; copies: string[] } {
  const alive = nodes.filter(({ state }) => state === 'alive')
  const owner = alive.find(({ report }) => report.owned?.includes(shard) === true)?.row.node
  const copies = alive.filter(
    ({ row, report }) => row.node !== owner && report.held?.includes(shard) === true,
  )
  return { owner, copies: copies.map(({ row }) => row.node) }
}

/** Shards without an owner although a node serves. */
function shardProblems(shards: number, nodes: readonly ObservedNode[]): string[] {
  const isAnyServing = nodes.some(
    ({ state, report }) => state === 'alive' && report.servesSinceMs !== undefined,
  )
  if (!isAnyServing) return []
  const unowned = Array.from({ length: shards }, (_none, shard) => shard).filter(
    (shard) => holdersOf(shard, nodes).owner === undefined,
  )
  if (unowned.length === 0) return []
  return [
    `No node owns ${unowned.length === 1 ? 'shard' : 'shards'} ${unowned.join(', ')}: one takes over when the lease has expired`,
  ]
}

/**
 * @returns the node that wrote the last segment of a shard, '' in a new cluster; undefined if the segment
 * does not verify
 */
function writerOf(
  { segment, last }: ShardLogStatus,
  keys: Parameters<typeof decodeHeader>[1],
): string | undefined {
  try {
    return decodeHeader({ segment, ...last }, keys).writer.node
  } catch {
    return undefined
  }
}

/** Logs that are missing, and those whose last segment does not verify. */
function logProblems(
  shards: number,
  logs: readonly ShardLogStatus[],
  writers: readonly (string | undefined)[],
): string[] {
  const unverified = logs.filter((log, index) => writers[index] === undefined || log.shard >= shards)
  return [
    ...Array.from({ length: shards }, (_none, shard) => shard)
      .filter((shard) => !logs.some((log) => log.shard === shard))
      .map((shard) => `The log of shard ${shard} is missing`),
    ...unverified.map(
      ({ shard, segment }) =>
        `Segment ${segment} of shard ${shard} does not verify: it was changed, or written without the master seed`,
    ),
  ]
}

interface ObservedNode {
  row: Member
  report: NodeReport
  state: 'alive' | 'unresponsive' | 'stopped'
}

/**
 * Nodes whose rows verify, with their state after one heartbeat interval, and the faults of the other rows.
 */
async function observeNodes(
  session: Session,
  { facts, key, leaseSecs }: StatusRequest,
): Promise<{ nodes: ObservedNode[]; faults: RowFault[] }> {
  const secret = { key, cluster: facts.id }
  const table = new NodeTable(session, statementsOf(clusterTables), { secret })
  const before = await table.all()
  const isAnyAlive = before.members.some(({ alive }) => alive)
  if (isAnyAlive) await delay(((leaseSecs * 1_000) / HEARTBEATS_PER_LEASE) * HEARTBEAT_INTERVALS)
  const { members, faults } = isAnyAlive ? await table.all() : before
  const nodes = members.map((row): ObservedNode => {
    const first = before.members.find(({ node }) => node === row.node)
    const hasHeartbeat = first?.heartbeat !== row.heartbeat || first.incarnation !== row.incarnation
    return {
      row,
      report: decodeReport(row),
      state: row.alive ? (hasHeartbeat ? 'alive' : 'unresponsive') : 'stopped',
    }
  })
  return { nodes, faults }
}

function describeSize({ bytes }: ClusterStatus): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB in its tables`
}

function describeStandbys({ standbys }: ClusterStatus): string {
  if (standbys === undefined) return 'unknown: the role may not list them (GRANT pg_monitor allows it)'
  if (standbys.length === 0) return 'none connected'
  return standbys.map(({ name, state }) => `${name} (${state})`).join(', ')
}

function describeNodes(nodes: readonly ObservedNode[]): string[] {
  if (nodes.length === 0) return ['node       no node has joined yet']
  const width = Math.max(...nodes.map(({ row }) => row.node.length))
  return nodes.map((node) => `node       ${node.row.node.padEnd(width)}  ${describeNode(node)}`)
}

function describeNode({ row, report, state }: ObservedNode): string {
  if (state === 'stopped') return `stopped, was on ${row.address}`
  if (state === 'unresponsive') return `NO HEARTBEAT, was on ${row.address}`
  const { servesSinceMs: since, owned = [], held = [], lagSecs, version, refuses } = report
  const where = `on ${row.address}, version ${version}, joined ${new Date(row.incarnation).toISOString()}, lease ${leaseMsOf(row) / 1_000} s`
  if (refuses !== undefined) return `REFUSES to serve, ${where}`
  const copies = held.length - owned.length
  const copiesText =
    lagSecs === undefined ? '' : `, ${plural(copies, 'copy', 'copies')}, ${secsText(lagSecs)} behind`
  if (since !== undefined)
    return `SERVES ${plural(owned.length, 'shard')} since ${new Date(since).toISOString()}${copiesText}, ${where}`
  return lagSecs === undefined ? `starting, ${where}` : `standby${copiesText}, ${where}`
}

function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : many}`
}

function secsText(secs = 0): string {
  return `${secs.toFixed(1)} s`
}

function describeShard(
  { shard, segment, checkpoint, stateBytes }: ShardLogStatus,
  node: string,
  nodes: readonly ObservedNode[],
): string {
  const written = node === '' ? 'no node has written yet' : `written by ${node}`
  const { owner, copies } = holdersOf(shard, nodes)
  const nodesText = [
    owner === undefined ? 'no owner' : `owned by ${owner}`,
    ...(copies.length === 0 ? [] : [`copies at ${copies.join(', ')}`]),
  ]
  const checkpointText = checkpoint === undefined ? 'no checkpoint' : `checkpoint at ${checkpoint}`
  const since = `${(stateBytes / 1_048_576).toFixed(1)} MiB of sealed rows since`
  return `shard ${String(shard).padEnd(4)} ${nodesText.join(', ')}; segment ${segment}, ${written}; ${checkpointText}, ${since}`
}
