import { fields, isBytes, isFlag, isNumber, isText, listOf } from '../../base/shape.js'
import { hasMac, rowMac, type RowValue } from './row-mac.js'
import { parameterOf, type Session } from './session.js'
import type { ClusterStatements } from './statements.js'
import { isMissingColumn, isMissingTable, OtherVersion, UnverifiedRow } from './database-errors.js'

/** The identity and state of a cluster: the only row of its table. */
export interface ClusterFacts {
  /** Format of the tables and segments. */
  format: number
  /** 32 hex digits, random. */
  id: string
  shards: number
  /** How often the strands were resharded before they were moved into this cluster. */
  layout: number
  /** As in format.json; identifies the master seed. */
  seedFingerprint: string
  createdAtMs: number
  /** Era of users' tokens, as in format.json. */
  tokenEra: number
  /** False while a push is running. */
  ready: boolean
  /** Number of writes to this row. A node rejects a revision older than one that it has seen. */
  revision: number
}

/** The format of clusters that this version creates and reads: segments and checkpoints of form v2. */
export const clusterFormat = 2

/**
 * Reads the row.
 * @param key key of the row MACs (src/data/derived-keys.ts)
 * @returns undefined if the database holds no cluster
 * @throws OtherVersion, UnverifiedRow
 */
export async function readFacts(
  session: Session,
  { cluster }: ClusterStatements,
  key: Uint8Array,
): Promise<ClusterFacts | undefined> {
  let rows: unknown
  try {
    rows = await session.rows(cluster.get)
  } catch (error) {
    if (isMissingTable(error)) return undefined
    if (isMissingColumn(error)) throw await otherVersion(session, cluster)
    throw error
  }
  if (!areFacts(rows)) throw await otherVersion(session, cluster)
  const [row] = rows
  if (row === undefined) return undefined
  const { cluster_id: id, seed_fingerprint: seedFingerprint, mac, ...more } = row
  const { created_at_ms: createdAtMs, token_era: tokenEra, revision, ...others } = more
  const numbers = { createdAtMs: Number(createdAtMs), tokenEra: Number(tokenEra), revision: Number(revision) }
  const facts = { ...others, ...numbers, id, seedFingerprint }
  if (facts.format !== clusterFormat) throw new OtherVersion(facts.format, clusterFormat)
  const values = valuesOf(facts)
  if (hasMac({ key, cluster: id }, { table: TABLE, values, mac })) return facts
  throw new UnverifiedRow(
    'its cluster row does not verify: the master seed is not the one of this cluster, or the row was changed',
  )
}

/** Writes the row. @throws Error if there is a row already, or the commit may be lost */
export async function addFacts(
  session: Session,
  { cluster }: ClusterStatements,
  { facts, key }: { facts: ClusterFacts; key: Uint8Array },
): Promise<void> {
  const values = valuesOf(facts)
  const mac = rowMac({ key, cluster: facts.id }, TABLE, values)
  const { warned } = await session.write(cluster.add, [...values.map(parameterOf), mac])
  if (warned) throw new Error('it stopped waiting for its standby')
}

/** Marks the cluster as complete. @param facts the row as it was read */
export async function makeReady(
  session: Session,
  { cluster }: ClusterStatements,
  { facts, key }: { facts: ClusterFacts; key: Uint8Array },
): Promise<void> {
  const revision = facts.revision + 1
  const mac = rowMac({ key, cluster: facts.id }, TABLE, valuesOf({ ...facts, ready: true, revision }))
  const { rows, warned } = await session.write(cluster.ready, [facts.id, revision, mac])
  if (rows !== 1) throw new Error('another process has replaced its cluster')
  if (warned) throw new Error('it stopped waiting for its standby')
}

const TABLE = 'cluster'

/** The values in the order of the columns. */
function valuesOf(facts: ClusterFacts): RowValue[] {
  const { format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready, revision } = facts
  return [format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready, revision]
}

/** The error for tables that another version created. */
async function otherVersion(
  session: Session,
  { format }: ClusterStatements['cluster'],
): Promise<OtherVersion> {
  const rows: unknown = await session.rows(format).catch(() => undefined)
  return areFormats(rows) ? new OtherVersion(rows[0]?.format, clusterFormat) : new OtherVersion()
}

const areFormats = listOf(fields({ format: isNumber }))

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
    revision: isText,
    mac: isBytes,
  }),
)
