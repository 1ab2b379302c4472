import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { inherited } from '../../../scripts/crash-loop/inherited.mjs'
import vectors from '../../vectors/former-cluster.json' with { type: 'json' }
import type { ClusterOfOne } from '../postgres/cluster-of-one.js'
import type { TestPostgres } from '../postgres/postgres.js'

/*
 * A cluster of format 1, created by a version of that format: a pushed directory of two shards, later writes
 * of a node, and two erased bodies, one in each part. The node was stopped in order.
 */

/** The root over the heads of all its strands. */
export const formerHeadsRoot = vectors.headsRoot

const tables = [
  `CREATE TABLE strandfast_cluster (
    one integer PRIMARY KEY CHECK (one = 1), format integer NOT NULL, cluster_id text NOT NULL,
    shards integer NOT NULL, layout integer NOT NULL, seed_fingerprint text NOT NULL,
    created_at_ms bigint NOT NULL, token_era bigint NOT NULL, ready boolean NOT NULL)`,
  `CREATE TABLE strandfast_segments (
    shard integer NOT NULL, segment bigint NOT NULL, part integer NOT NULL,
    hash bytea NOT NULL, header text NOT NULL, blocks bytea NOT NULL, state bytea,
    PRIMARY KEY (shard, segment, part))`,
  `CREATE TABLE strandfast_checkpoints (
    shard integer NOT NULL, segment bigint NOT NULL, part integer NOT NULL,
    state bytea NOT NULL, PRIMARY KEY (shard, segment, part))`,
  `CREATE TABLE strandfast_nodes (
    node text PRIMARY KEY, incarnation bigint NOT NULL, beat bigint NOT NULL, alive boolean NOT NULL,
    address text NOT NULL, format_max integer NOT NULL, settings_digest text NOT NULL, owns text NOT NULL)`,
]
const bytes = ['hash', 'blocks', 'state']

/** Creates and fills its tables, replacing existing ones. */
export async function makeFormerCluster(postgres: TestPostgres): Promise<void> {
  const rows = await postgres.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE tablename LIKE 'strandfast%'",
  )
  for (const { name } of rows) await postgres.query(`DROP TABLE ${name}`)
  for (const statement of tables) await postgres.query(statement)
  const { cluster, nodes, segments, checkpoints } = vectors
  for (const [table, all] of Object.entries({ cluster, nodes, segments, checkpoints })) {
    for (const row of all) {
      const values = Object.entries(row).map(([name, value]) =>
        bytes.includes(name) && typeof value === 'string' ? Buffer.from(value, 'hex') : value,
      )
      const placeholders = values.map((_value, nth) => `$${nth + 1}`)
      await postgres.query(`INSERT INTO strandfast_${table} VALUES (${placeholders.join(', ')})`, values)
    }
  }
}

/** Starts an upgrade, and kills it when `moment` resolves or the upgrade has ended. */
export async function cutOff(
  { env }: ClusterOfOne,
  target: string,
  moment: () => Promise<unknown>,
): Promise<void> {
  const entry = join(import.meta.dirname, '../../../dist/program/strandfast.js')
  const options = { env: { ...inherited, ...env }, stdio: 'ignore' } as const
  const child = spawn(process.execPath, [entry, 'cluster', 'upgrade', target], options)
  const ended = once(child, 'exit')
  await Promise.race([ended, moment()])
  child.kill('SIGKILL')
  await ended
}
