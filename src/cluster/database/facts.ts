import { fields, isBytes, isFlag, isNumber, isText, listOf } from '../../base/shape.js'
import { hasMac, rowMac, type RowValue } from './row-mac.js'
import { parameterOf, type Session } from './session.js'
import type { ClusterStatements } from './statements.js'
import { isMissingColumn, isMissingTable, OtherVersion, UntrueRow } from './trouble.js'

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
  /** How often the row was written: a node that knows a later one does not take an earlier one. */
  revision: number
}

/** The format of clusters that this version makes and reads: segments and checkpoints of form v2. */
export const clusterFormat = 2

/**
 * Reads the row.
 * @param key by which its MAC is made (src/data/derived-keys.ts)
 * @returns undefined where the database holds none
 * @throws OtherVersion, UntrueRow
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
  throw new UntrueRow(
    'its row of the cluster does not verify: the master seed given is not that of the cluster, or the row was changed',
  )
}

/** Writes the row. @throws Error where there is one, or where the commit may be lost */
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

/** Says that the cluster is whole. @param facts as they are there */
export async function makeReady(
  session: Session,
  { cluster }: ClusterStatements,
  { facts, key }: { facts: ClusterFacts; key: Uint8Array },
): Promise<void> {
  const revision = facts.revision + 1
  const mac = rowMac({ key, cluster: facts.id }, TABLE, valuesOf({ ...facts, ready: true, revision }))
  const { rows, warned } = await session.write(cluster.ready, [facts.id, revision, mac])
  if (rows !== 1) throw new Error('its cluster was replaced meanwhile')
  if (warned) throw new Error('it stopped waiting for its standby')
}

const TABLE = 'cluster'

/** In the order of the columns. */
function valuesOf(facts: ClusterFacts): RowValue[] {
  const { format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready, revision } = facts
  return [format, id, shards, layout, seedFingerprint, createdAtMs, tokenEra, ready, revision]
}

/** Of tables that are not those of this version. */
async function otherVersion(
  session: Session,
  { format }: ClusterStatements['cluster'],
): Promise<OtherVersion> {
  const rows: unknown = await session.rows(format).catch(() => undefined)
  return areFormats(rows) ? new OtherVersion(rows[0]?.format, clusterFormat) : new OtherVersion()
}

const areFormats = listOf(fields({ format: isNumber }))

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
    revision: isText,
    mac: isBytes,
  }),
)
