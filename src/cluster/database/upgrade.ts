import { fields, isFlag, isNumber, isText, listOf } from '../../base/shape.js'
import { clusterFormat, type ClusterFacts, makeReady, readFacts } from './facts.js'
import { headsOf } from './standing.js'
import type { Session } from './session.js'
import { clusterTables, statementsOf } from './statements.js'
import { isMissingTable } from './trouble.js'

/*
 * How a cluster of the format before becomes one of this: its tables are made under other names, and take the place of the former ones
 * in one transaction.
 */

/** The format of clusters that is read: segments and checkpoints of form v1. */
export const formerFormat = clusterFormat - 1

/** What names of the tables begin with that are to take the place of the former ones. */
const nextTables = `${clusterTables}_next`

/** The statements of these tables. */
export const nextStatements = statementsOf(nextTables)

const former = {
  cluster: `SELECT format, cluster_id, shards, layout, seed_fingerprint, created_at_ms, token_era, ready
    FROM ${clusterTables}_cluster`,
  nodes: `SELECT node, incarnation, beat, alive, settings_digest FROM ${clusterTables}_nodes ORDER BY node`,
  lock: `LOCK TABLE ${clusterTables}_segments, ${clusterTables}_nodes IN ACCESS EXCLUSIVE MODE`,
  drop: ['cluster', 'nodes', 'segments', 'checkpoints'].map((name) => `DROP TABLE ${clusterTables}_${name}`),
}

/** A node as its row shows it. */
export interface FormerNode {
  node: string
  alive: boolean
  settingsDigest: string
  /** Another text with each beat and each start. */
  beat: string
}

/** What the row of a cluster says in both formats; nothing vouches for it. */
export type FormerFacts = Omit<ClusterFacts, 'revision'>

/** What a database holds, of this format or the one before; undefined where there is no cluster. */
export async function formerFacts(session: Session): Promise<FormerFacts | undefined> {
  try {
    const rows: unknown = await session.rows(former.cluster)
    if (!areFacts(rows)) throw new Error('Expected the row that a cluster has')
    const [row] = rows
    if (row === undefined) return undefined
    const { cluster_id: id, seed_fingerprint: seedFingerprint, created_at_ms, token_era, ...more } = row
    return { ...more, id, seedFingerprint, createdAtMs: Number(created_at_ms), tokenEra: Number(token_era) }
  } catch (error) {
    if (isMissingTable(error)) return undefined
    throw error
  }
}

/** All nodes, by name. */
export async function formerNodes(session: Session): Promise<FormerNode[]> {
  const rows: unknown = await session.rows(former.nodes)
  if (!areNodes(rows)) throw new Error('Expected the rows of nodes that a cluster has')
  return rows.map(({ node, incarnation, beat, alive, settings_digest: settingsDigest }) => ({
    node,
    alive,
    settingsDigest,
    beat: `${incarnation} ${beat}`,
  }))
}

/** Removes what an upgrade that was cut off has left. */
export async function dropNext(session: Session): Promise<void> {
  for (const statement of nextStatements.drop) {
    try {
      await session.write(statement, [])
    } catch (error) {
      if (!isMissingTable(error)) throw error
    }
  }
}

/** What the tables of a cluster were read as: they are replaced only while they are as they were. */
export interface ReadAs {
  id: string
  heads: ReadonlyMap<number, number>
  nodes: readonly FormerNode[]
}

/** Puts the new tables in the place of the former ones. @throws Error where a node has run since, or the commit may be lost */
export async function replaceTables(
  session: Session,
  { id, heads, nodes }: ReadAs,
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

/** 64-bit numbers come as texts. */
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
