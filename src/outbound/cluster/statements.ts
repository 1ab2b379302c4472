/*
 * The tables of a cluster, and what is asked of them, in the SQL that PostgreSQL shares with the engines that speak its
 * protocol: no sequences, no advisory locks, no ON CONFLICT, no time of the database in a decision.
 */

/** The statements of a cluster whose tables have this prefix. */
export interface ClusterStatements {
  /** Makes a table each. */
  create: readonly string[]
  drop: readonly string[]
  /** $1 shard, $2 segment, $3 hash, $4 header, $5 blocks, $6 state. */
  begin: string
  /** $1 shard, $2 segment before, $3 its hash, $4 hash, $5 header, $6 blocks, $7 state: no row where that is not there. */
  append: string
  /** $1 shard, $2 segment, $3 part, $4 hash, $5 blocks, $6 state: a further part of the segment of this transaction. */
  appendPart: string
  /** $1 shard, $2 segment, $3 part, $4 hash, $5 blocks. */
  rewrite: string
  /** $1 shard, $2 segment, $3 hash: writes what is there already, behind which it is durable. */
  confirm: string
  /** $1 shard, $2 segment. */
  hashOf: string
  /** $1 shard, $2 segment, $3 part, $4 rows: what lies behind a place, in order. */
  read: string
  nodes: {
    all: string
    /** $1 node, $2 address, $3 format, $4 digest of settings: a row where its name has none. */
    add: string
    /** The same: its row again, where it is not alive. */
    rejoin: string
    /** $1 node, $2 incarnation, $3 what it owns. */
    beat: string
    /** $1 node, $2 incarnation, $3 beat. */
    expel: string
  }
}

/** @param prefix of the names of tables: letters and underscores */
export function statementsOf(prefix: string): ClusterStatements {
  const segments = `${prefix}_segments`
  const nodes = `${prefix}_nodes`
  const tables = { segments, nodes }
  return {
    create: [
      `CREATE TABLE ${segments} (
        shard integer NOT NULL, segment bigint NOT NULL, part integer NOT NULL,
        hash bytea NOT NULL, header text NOT NULL, blocks bytea NOT NULL, state bytea,
        PRIMARY KEY (shard, segment, part))`,
      `CREATE TABLE ${nodes} (
        node text PRIMARY KEY, incarnation bigint NOT NULL, beat bigint NOT NULL, alive boolean NOT NULL,
        address text NOT NULL, format_max integer NOT NULL, settings_digest text NOT NULL, owns text NOT NULL)`,
    ],
    drop: Object.values(tables).map((name) => `DROP TABLE ${name}`),
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
    read: `SELECT segment, part, hash, header, blocks, state FROM ${segments}
      WHERE shard = $1 AND (segment, part) > ($2, $3) ORDER BY segment, part LIMIT $4`,
    nodes: {
      all: `SELECT node, incarnation, beat, alive, address, format_max, settings_digest, owns FROM ${nodes} ORDER BY node`,
      add: `INSERT INTO ${nodes} (node, incarnation, beat, alive, address, format_max, settings_digest, owns)
        SELECT $1, 1, 0, true, $2, $3, $4, '{}' WHERE NOT EXISTS (SELECT 1 FROM ${nodes} WHERE node = $1)`,
      rejoin: `UPDATE ${nodes} SET incarnation = incarnation + 1, beat = 0, alive = true, address = $2,
        format_max = $3, settings_digest = $4, owns = '{}' WHERE node = $1 AND NOT alive`,
      beat: `UPDATE ${nodes} SET beat = beat + 1, owns = $3 WHERE node = $1 AND incarnation = $2 AND alive`,
      expel: `UPDATE ${nodes} SET alive = false WHERE node = $1 AND incarnation = $2 AND beat = $3 AND alive`,
    },
  }
}
