import { fields, isFlag, isNumber, isText, listOf } from '../../base/shape.js'
import { clusterFormat, type ClusterFacts, makeReady, readFacts } from './facts.js'
import { headsOf } from './status.js'
import type { Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'
import { isMissingTable } from './database-errors.js'

/*
 * Upgrades a cluster from the previous format: creates its new tables under other names, then replaces the
 * former tables in one transaction.
 */

/** The format that an upgrade reads: segments and checkpoints of form v1. */
export const formerFormat = clusterFormat - 1

/** Prefix of the new tables until they replace the former ones. */
const nextTables = `${clusterTables}_next`

/** The statements for the new tables. */
export const nextStatements = statementsOf(nextTables)

const former = {
  cluster: `SELECT format, cluster_id, shards, layout, seed_fingerprint, created_at_ms, token_era, ready
    FROM ${clusterTables}_cluster`,
  nodes: `SELECT node, incarnation, beat, alive, settings_digest FROM ${clusterTables}_nodes ORDER BY node`,
  lock: `LOCK TABLE ${clusterTables}_segments, ${clusterTables}_nodes IN ACCESS EXCLUSIVE MODE`,
  drop: ['cluster', 'nodes', 'segments', 'checkpoints'].map((name) => `DROP TABLE ${clusterTables}_${name}`),
}

/** A node, as its row describes it. */
export interface FormerNode {
  node: string
  alive: boolean
  settingsDigest: string
  /** Changes with each heartbeat and each start. */
  heartbeat: string
}

/** The columns that the row of a cluster has in both formats; they are not authenticated. */
export type FormerFacts = Omit<ClusterFacts, 'revision'>

/** The cluster that a database holds, in this format or the previous one; undefined if there is none. */
export async function formerFacts(session: Session): Promise<FormerFacts | undefined> {
  try {
    const rows: unknown = await session.rows(former.cluster)
    if (!areFacts(rows)) throw new Error('Malformed cluster row')
    const [row] = rows
    if (row === undefined) return undefined
    const { cluster_id: id, seed_fingerprint: seedFingerprint, created_at_ms, token_era, ...more } = row
    return { ...more, id, seedFingerprint, createdAtMs: Number(created_at_ms), tokenEra: Number(token_era) }
  } catch (error) {
    if (isMissingTable(error)) return undefined
    throw error
  }
}

/** All nodes, ordered by name. */
export async function formerNodes(session: Session): Promise<FormerNode[]> {
  const rows: unknown = await session.rows(former.nodes)
  if (!areNodes(rows)) throw new Error('Malformed node row')
  return rows.map(({ node, incarnation, beat, alive, settings_digest: settingsDigest }): FormerNode => ({
    node,
    alive,
    settingsDigest,
    heartbeat: `${incarnation} ${beat}`,
  }))
}

/** Removes the leftovers of an interrupted upgrade. */
export async function dropNext(session: Session): Promise<void> {
  for (const statement of nextStatements.drop) {
    try {
      await session.write(statement, [])
    } catch (error) {
      if (!isMissingTable(error)) throw error
    }
  }
}

/** The state of the tables when they were read: they are replaced only if it has not changed. */
export interface UpgradeSnapshot {
  id: string
  heads: ReadonlyMap<number, number>
  nodes: readonly FormerNode[]
}

/**
 * Replaces the former tables by the new ones.
 * @throws Error if a node has run in between, or the commit may be lost
 */
export async function replaceTables(
  session: Session,
  { id, heads, nodes }: UpgradeSnapshot,
  key: Uint8Array,
): Promise<void> {
  const facts = await readFacts(session, nextStatements, key)
  if (facts?.id !== id) throw new Error('another upgrade of it has begun')
  await makeReady(session, nextStatements, { facts, key })
  const { warned } = await session.transaction(async () => {
    await session.write(former.lock, [])
    const now = [[...(await headsOf(session))], await formerNodes(session)]
    if (JSON.stringify(now) !== JSON.stringify([[...heads], nodes]))
      throw new Error('a node has run since the upgrade began: stop all nodes')
    for (const statement of former.drop) await session.write(statement, [])
    for (const table of nextStatements.tables) {
      const name = table.replace(nextTables, clusterTables)
      await session.write(`ALTER TABLE ${table} RENAME TO ${name}`, [])
    }
    return { rows: 0, warned: false }
  })
  if (warned) throw new Error('it stopped waiting for its standby')
}

/** 64-bit numbers arrive as text. */
const areFacts = listOf(
  fields({
    format: isNumber,
    cluster_id: isText,
    shards: isNumber,
    layout: isNumber,
    seed_fingerprint: isText,
    created_at_ms: isText,
    token_era: isText,
    ready: isFlag,
  }),
)

const areNodes = listOf(
  fields({
    node: isText,
    incarnation: isText,
    beat: isText,
    alive: isFlag,
    settings_digest: isText,
  }),
)
