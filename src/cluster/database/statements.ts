import { limits } from '../../base/limits/limits.js'
import { MAC_BYTES } from './row-mac.js'
import { createTables, nodeTable, tableNames } from './tables.js'

/*
 * The tables of a cluster and its statements, in the SQL that PostgreSQL shares with engines that speak its
 * protocol: no sequences, no advisory locks, no ON CONFLICT, and no decision depends on the database's clock.
 */

export interface ClusterStatements {
  /** Prefix of the table names. */
  prefix: string
  tables: readonly string[]
  create: readonly string[]
  drop: readonly string[]
  /** Removes the rows that an incomplete cluster has left, one statement for each table. */
  empty: readonly string[]
  /** $1 shard, $2 segment, $3 hash, $4 header, $5 blocks, $6 state. */
  begin: string
  /**
   * $1 shard, $2 segment before, $3 its hash, $4 hash, $5 header, $6 blocks, $7 state: writes no row if the
   * segment before is missing.
   */
  append: string
  /** $1 shard, $2 segment, $3 part, $4 hash, $5 blocks, $6 state: a further part, in the same transaction. */
  appendPart: string
  /** $1 shard, $2 segment, $3 part, $4 hash, $5 blocks. */
  rewrite: string
  /** $1 shard, $2 segment, $3 hash: writes the row unchanged; once this write is durable, so is the row. */
  confirm: string
  /** $1 shard, $2 segment. */
  hashOf: string
  /** $1 shard, $2 segment: the last segment before it. */
  lastBefore: string
  /** $1 shard, $2 segment. */
  headerOf: string
  /** Tables and the privileges on them that a node needs and lacks. */
  missingPrivileges: string
  /** Bytes of each table. */
  bytes: string
  /** Connected standbys and their states. */
  standbys: string
  /**
   * $1 shard, $2 segment, $3 part, $4 rows, $5 bytes: the rows after a position, in order. The result ends
   * with the segment that reaches these bytes.
   */
  read: string
  /** The last segment of each shard, in one snapshot. */
  heads: string
  cluster: {
    get: string
    /** Only the format, which the table of every version has. */
    format: string
    /**
     * $1 format, $2 cluster id, $3 shards, $4 layout, $5 fingerprint of the seed, $6 Unix ms, $7 era of
     * tokens, $8 ready, $9 revision, $10 MAC.
     */
    add: string
    /** $1 cluster id, $2 revision, $3 MAC: replaces the row by the next revision. */
    ready: string
    /** $1 cluster id: only if the cluster is not ready. */
    remove: string
  }
  checkpoints: {
    /** $1 shard, $2 segment, $3 part, $4 state. */
    put: string
    /** $1 shard, $2 segment: leftovers of an interrupted attempt. */
    clear: string
    /** $1 shard, $2 segment: earlier checkpoints, and the part that says that rows remain to be removed. */
    clearBefore: string
    /** $1 shard: the segment of the last complete checkpoint, which has part 0. */
    last: string
    /** $1 shard, $2 segment, $3 part. */
    read: string
    /** $1 shard, $2 segment: bytes of the sealed rows after it. */
    stateBytesAfter: string
    /**
     * $1 shard, $2 segment (exclusive) to $3 segment (inclusive): removes the sealed rows that the checkpoint
     * contains.
     */
    forget: string
  }
  nodes: {
    /** $1 rows at most, $2 node: the row of that node first, then live nodes. */
    all: string
    /** Inserts a row, $1 to $10 in the order of its columns, if the name is free. */
    add: string
    /**
     * $1 to $10: replaces the row of this name if its other columns still equal $11 to $19. Returns the
     * database's time of day.
     */
    replace: string
  }
}

export const clusterTables = 'strandfast'

const [nodeColumns, nodeTypes] = [Object.keys(nodeTable), Object.values(nodeTable)]
/** The columns as they are read: a longer text is cut, so that its MAC does not verify. */
const nodeReads = Object.entries(nodeTable).map(([name, type]) => {
  if (type === 'bytea') return `substring(${name} from 1 for ${MAC_BYTES + 1})`
  if (type !== 'text') return name
  const isReport = name === 'owns' || name === 'settings_digest'
  return `left(${name}, ${isReport ? limits.clusterReportCharsMax : limits.clusterNameCharsMax})`
})

/** @param prefix of the table names: letters and underscores */
export function statementsOf(prefix: string): ClusterStatements {
  const segments = `${prefix}_segments`
  const nodes = `${prefix}_nodes`
  const cluster = `${prefix}_cluster`
  const checkpoints = `${prefix}_checkpoints`
  const tables = tableNames(prefix)
  return {
    prefix,
    tables,
    create: createTables(prefix),
    drop: tables.map((name) => `DROP TABLE ${name}`),
    empty: [segments, checkpoints].map((name) => `DELETE FROM ${name}`),
    begin: `INSERT INTO ${segments} (shard, segment, part, hash, header, blocks, state)
      VALUES ($1, $2, 0, $3, $4, $5, $6)`,
    append: `INSERT INTO ${segments} (shard, segment, part, hash, header, blocks, state)
      SELECT shard, segment + 1, 0, $4::bytea, $5::text, $6::bytea, $7::bytea
      FROM ${segments} WHERE shard = $1 AND segment = $2 AND part = 0 AND hash = $3`,
    appendPart: `INSERT INTO ${segments} (shard, segment, part, hash, header, blocks, state)
      VALUES ($1, $2, $3, $4, '', $5, $6)`,
    rewrite: `UPDATE ${segments} SET blocks = $5
      WHERE shard = $1 AND segment = $2 AND part = $3 AND hash = $4`,
    confirm: `UPDATE ${segments} SET header = header
      WHERE shard = $1 AND segment = $2 AND part = 0 AND hash = $3`,
    hashOf: `SELECT hash FROM ${segments} WHERE shard = $1 AND segment = $2 AND part = 0`,
    lastBefore: `SELECT segment, hash FROM ${segments} WHERE shard = $1 AND segment < $2 AND part = 0
      ORDER BY segment DESC LIMIT 1`,
    headerOf: `SELECT header, hash FROM ${segments} WHERE shard = $1 AND segment = $2 AND part = 0`,
    missingPrivileges: `SELECT name, privilege FROM (VALUES ${neededRights({ segments, nodes, cluster, checkpoints })})
      AS needed (name, privilege) WHERE NOT has_table_privilege(name, privilege)`,
    bytes: tables.map((name) => `SELECT pg_total_relation_size('${name}') AS bytes`).join(' UNION ALL '),
    standbys: `SELECT application_name AS name, sync_state AS state FROM pg_stat_replication ORDER BY 1`,
    read: `SELECT segment, part, hash, header, blocks, state
      FROM (SELECT segment, part, hash, header, blocks, state,
        sum(bytes) OVER (ORDER BY segment) - sum(bytes) OVER (PARTITION BY segment) AS before
        FROM (SELECT segment, part, hash, header, blocks, state, length(blocks) + coalesce(length(state), 0) AS bytes
          FROM ${segments} WHERE shard = $1 AND (segment, part) > ($2, $3)
          ORDER BY segment, part LIMIT $4) AS found) AS counted
      WHERE before < $5::bigint ORDER BY segment, part`,
    // A few reads of the index for each shard; GROUP BY would read all of it.
    heads: `WITH RECURSIVE shards (shard) AS (SELECT min(shard) FROM ${segments} UNION ALL
        SELECT (SELECT min(shard) FROM ${segments} WHERE shard > shards.shard) FROM shards WHERE shard IS NOT NULL)
      SELECT shard, (SELECT max(segment) FROM ${segments} WHERE shard = shards.shard) AS segment
      FROM shards WHERE shard IS NOT NULL ORDER BY shard`,
    cluster: {
      get: `SELECT format, cluster_id, shards, layout, seed_fingerprint, created_at_ms, token_era, ready, revision, mac
        FROM ${cluster}`,
      format: `SELECT format FROM ${cluster}`,
      add: `INSERT INTO ${cluster}
        (one, format, cluster_id, shards, layout, seed_fingerprint, created_at_ms, token_era, ready, revision, mac)
        VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      ready: `UPDATE ${cluster} SET ready = true, revision = $2, mac = $3
        WHERE one = 1 AND cluster_id = $1 AND revision = $2::bigint - 1`,
      remove: `DELETE FROM ${cluster} WHERE one = 1 AND cluster_id = $1 AND NOT ready`,
    },
    checkpoints: {
      put: `INSERT INTO ${checkpoints} (shard, segment, part, state) VALUES ($1, $2, $3, $4)`,
      clear: `DELETE FROM ${checkpoints} WHERE shard = $1 AND segment = $2`,
      clearBefore: `DELETE FROM ${checkpoints}
        WHERE shard = $1 AND (segment < $2 OR (segment = $2 AND part = -1))`,
      last: `SELECT max(segment) AS segment FROM ${checkpoints} WHERE shard = $1 AND part = 0`,
      read: `SELECT state FROM ${checkpoints} WHERE shard = $1 AND segment = $2 AND part = $3`,
      stateBytesAfter: `SELECT coalesce(sum(octet_length(state)), 0) AS bytes FROM ${segments}
        WHERE shard = $1 AND segment > $2`,
      forget: `UPDATE ${segments} SET state = NULL
        WHERE shard = $1 AND segment > $2 AND segment <= $3 AND state IS NOT NULL`,
    },
    nodes: nodeStatements(nodes),
  }
}

function nodeStatements(table: string): ClusterStatements['nodes'] {
  return {
    all: `SELECT ${nodeReads.map((read, at) => `${read} AS ${nodeColumns[at]}`).join(', ')} FROM ${table}
      ORDER BY node = $2 DESC, alive DESC, node LIMIT $1`,
    add: `INSERT INTO ${table} (${nodeColumns.join(', ')})
      SELECT ${nodeTypes.map((type, at) => `$${at + 1}::${type}`).join(', ')}
      WHERE NOT EXISTS (SELECT 1 FROM ${table} WHERE node = $1)`,
    replace: `UPDATE ${table} SET ${nodeColumns
      .slice(1)
      .map((name, at) => `${name} = $${at + 2}`)
      .join(', ')}
      WHERE node = $1 AND ${nodeReads
        .slice(1)
        .map((read, at) => `${read} = $${at + nodeColumns.length + 1}`)
        .join(' AND ')}
      RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`,
  }
}

interface TableNames {
  segments: string
  nodes: string
  cluster: string
  checkpoints: string
}

/** The privileges that a node needs, as SQL rows. */
function neededRights({ segments, nodes, cluster, checkpoints }: TableNames): string {
  const needed = {
    [cluster]: ['SELECT'],
    [nodes]: ['SELECT', 'INSERT', 'UPDATE'],
    [segments]: ['SELECT', 'INSERT', 'UPDATE'],
    [checkpoints]: ['SELECT', 'INSERT', 'DELETE'],
  }
  return Object.entries(needed)
    .flatMap(([table, rights]) => rights.map((right) => `('${table}', '${right}')`))
    .join(', ')
}
