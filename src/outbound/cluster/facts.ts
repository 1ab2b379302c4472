import { isFlag, isNumber, isText, listOf, members } from '../../base/shape.js'
import type { Session } from './session.js'
import type { ClusterStatements } from './statements.js'
import { isMissingColumn, isMissingTable, OtherVersion } from './trouble.js'

/** What a cluster is: the one row of its table. */
export interface ClusterFacts {
  /** Of the tables and segments. */
  format: number
  /** 32 hex digits, random. */
  id: string
  shards: number
  /** How often its strands were moved to another number of shards, before they came here. */
  layout: number
  /** As in format.json: enough to recognise the master seed. */
  seedFingerprint: string
  createdAtMs: number
  /** Of users' tokens, as in format.json. */
  tokenEra: number
  /** False while a push is under way. */
  ready: boolean
}

/** The format of clusters that this version makes and reads: segments and checkpoints of form v2. */
export const clusterFormat = 2

/** What a database holds whose cluster is of another format. */
export function formatFault({ format }: Pick<ClusterFacts, 'format'>): string {
  const hint =
    format < clusterFormat ? 'stop all nodes and run strandfast cluster upgrade' : 'use its version'
  return `holds a cluster of format ${format}, and this program reads format ${clusterFormat}: ${hint}`
}

/** @returns undefined where the database holds none */
export async function readFacts(
  session: Session,
  { cluster }: ClusterStatements,
): Promise<ClusterFacts | undefined> {
  let rows: unknown
  try {
    rows = await session.rows(cluster.get)
  } catch (error) {
    if (isMissingTable(error)) return undefined
    if (isMissingColumn(error)) throw new OtherVersion()
    throw error
  }
  if (!areFacts(rows)) throw new OtherVersion()
  const [row] = rows
  if (row === undefined) return undefined
  const { cluster_id: id, seed_fingerprint: seedFingerprint, ...more } = row
  const { created_at_ms: createdAtMs, token_era: tokenEra, ...facts } = more
  return { ...facts, id, seedFingerprint, createdAtMs: Number(createdAtMs), tokenEra: Number(tokenEra) }
}

/** Writes the row. @throws Error where there is one, or where the commit may be lost */
export async function addFacts(
  session: Session,
  { cluster }: ClusterStatements,
  facts: ClusterFacts,
): Promise<void> {
  const { format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready } = facts
  const row = [format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, String(ready)]
  const { warned } = await session.write(cluster.add, row)
  if (warned) throw new Error('it stopped waiting for its standby')
}

/** Says that the cluster is whole. */
export async function makeReady(session: Session, { cluster }: ClusterStatements, id: string): Promise<void> {
  const { rows, warned } = await session.write(cluster.ready, [id])
  if (rows !== 1) throw new Error('its cluster was replaced meanwhile')
  if (warned) throw new Error('it stopped waiting for its standby')
}

/** 64-bit numbers come as texts. */
const areFacts = listOf(
  members<{
    format: number
    cluster_id: string
    shards: number
    layout: number
    seed_fingerprint: string
    created_at_ms: string
    token_era: string
    ready: boolean
  }>({
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
