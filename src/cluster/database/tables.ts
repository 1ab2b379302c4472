import { fields, isText, listOf } from '../../base/shape.js'
import { UnfitServer } from './database-errors.js'
import type { Session } from './session.js'

/*
 * The tables of a cluster: how they are created, and whether they still are what was created. A dump restored
 * without its constraints, or a trigger, would break what the log relies on without any error.
 */

/** A table, in the words of PostgreSQL's catalogue. */
interface TableShape {
  /** Name, type and NOT NULL of each column. */
  columns: readonly string[]
  /** Columns of the primary key. */
  key: readonly string[]
  /** The other constraints. */
  checks: readonly string[]
}

/** Columns of the table of nodes, the key first, and their types; none is NULL. */
export const nodeTable = {
  node: 'text',
  incarnation: 'bigint',
  ended: 'bigint',
  beat: 'bigint',
  alive: 'boolean',
  address: 'text',
  format_max: 'integer',
  settings_digest: 'text',
  owns: 'text',
  mac: 'bytea',
}

const partOfShard = ['shard integer NOT NULL', 'segment bigint NOT NULL', 'part integer NOT NULL']
const partKey = ['shard', 'segment', 'part']

const shapes: Readonly<Record<string, TableShape>> = {
  cluster: {
    columns: [
      'one integer NOT NULL',
      'format integer NOT NULL',
      'cluster_id text NOT NULL',
      'shards integer NOT NULL',
      'layout integer NOT NULL',
      'seed_fingerprint text NOT NULL',
      'created_at_ms bigint NOT NULL',
      'token_era bigint NOT NULL',
      'ready boolean NOT NULL',
      'revision bigint NOT NULL',
      'mac bytea NOT NULL',
    ],
    key: ['one'],
    checks: ['CHECK ((one = 1))'],
  },
  nodes: {
    columns: Object.entries(nodeTable).map(([name, type]) => `${name} ${type} NOT NULL`),
    key: ['node'],
    checks: [],
  },
  segments: {
    columns: [
      ...partOfShard,
      'hash bytea NOT NULL',
      'header text NOT NULL',
      'blocks bytea NOT NULL',
      'state bytea',
    ],
    key: partKey,
    checks: [],
  },
  checkpoints: { columns: [...partOfShard, 'state bytea NOT NULL'], key: partKey, checks: [] },
}

export function tableNames(prefix: string): string[] {
  return Object.keys(shapes).map((name) => `${prefix}_${name}`)
}

/** One statement for each table. */
export function createTables(prefix: string): string[] {
  return Object.entries(shapes).map(
    ([name, { columns, key, checks }]) =>
      `CREATE TABLE ${prefix}_${name} (${[...columns, `PRIMARY KEY (${key.join(', ')})`, ...checks].join(', ')})`,
  )
}

/**
 * One row for each table. A key that is deferred or whose index is invalid does not count. `others` has all
 * that changes what statements do to rows, or can refuse them.
 */
function shapeQuery(prefix: string): string {
  const names = tableNames(prefix).map((name) => `('${name}')`)
  return `SELECT wanted.name, coalesce(c.relkind::text, '') AS kind, coalesce(c.relpersistence::text, '') AS persistence,
    concat(system_identifier, ' ', c.oid) AS identity,
    ARRAY(SELECT concat(a.attname, ' ', format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation END,
        CASE WHEN a.attgenerated <> '' OR a.attidentity <> '' THEN ' GENERATED' END,
        CASE WHEN a.attnotnull THEN ' NOT NULL' END)
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS columns,
    ARRAY(SELECT a.attname::text
      FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, at)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid AND i.indisready AND i.indimmediate
      ORDER BY k.at) AS key,
    ARRAY(SELECT pg_get_constraintdef(oid) FROM pg_constraint
      WHERE conrelid = c.oid AND contype = 'c' ORDER BY 1) AS checks,
    ARRAY(SELECT 'the trigger ' || tgname FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal
      UNION ALL SELECT 'the rule ' || rulename FROM pg_rewrite WHERE ev_class = c.oid
      UNION ALL SELECT 'the foreign key ' || conname FROM pg_constraint
        WHERE contype = 'f' AND c.oid IN (conrelid, confrelid)
      UNION ALL SELECT 'the index ' || indexrelid::regclass FROM pg_index
        WHERE indrelid = c.oid AND NOT indisprimary AND (indisunique OR indisexclusion OR indexprs IS NOT NULL)
      UNION ALL SELECT 'the child table ' || inhrelid::regclass FROM pg_inherits WHERE inhparent = c.oid
      UNION ALL SELECT 'the parent table ' || inhparent::regclass FROM pg_inherits WHERE inhrelid = c.oid
      UNION ALL SELECT 'row-level security' WHERE c.relrowsecurity) AS others
    FROM pg_control_system() CROSS JOIN (VALUES ${names.join(', ')}) AS wanted (name)
      LEFT JOIN pg_class c ON c.oid = to_regclass(wanted.name)`
}

/** What the tables of a cluster are not, in sentences without a full stop. */
export interface TableFaults {
  /** Tables that do not exist. */
  missing: string[]
  /** Existing tables that are not as they were created. */
  wrong: string[]
}

/** Also the identity of the tables, which their copies do not share, except those of a physical standby. */
interface ExaminedTables extends TableFaults {
  identity: string
}

/** Compares the tables with what they were created as, by one query. */
export async function examineTables(session: Session, prefix: string): Promise<ExaminedTables> {
  const rows: unknown = await session.rows(shapeQuery(prefix))
  if (!areShapes(rows)) throw new Error('Malformed row of the catalogue')
  const missing = rows.filter(({ kind }) => kind === '')
  return {
    // The order of the rows may change with the plan of the query.
    identity: rows
      .map(({ identity }) => identity)
      .toSorted()
      .join(),
    missing: missing.map(({ name }) => `the table ${name} is missing: restore the database from a backup`),
    wrong: Object.entries(shapes).flatMap(([name, shape]) => {
      const found = rows.find((row) => row.name === `${prefix}_${name}` && row.kind !== '')
      return found === undefined ? [] : faultsOf(found, shape)
    }),
  }
}

/**
 * Checks the tables before they are used.
 * @param known their identity, if this process has used them before
 * @returns their identity
 * @throws UnfitServer if a table is missing, or not as it was created, or they are a copy
 */
export async function requireTables(session: Session, prefix: string, known?: string): Promise<string> {
  const { missing, wrong, identity } = await examineTables(session, prefix)
  const faults = [...missing, ...wrong]
  if (known !== undefined && known !== identity && missing.length === 0) faults.push(COPY)
  if (faults.length > 0) throw new UnfitServer(faults.join('; '))
  return identity
}

const COPY =
  'its tables are not those with which this node has started, but a copy in another database or schema: writes to both would fork the logs. Check SERVICE_CLUSTER_URL and search_path; if the cluster was moved, stop all nodes before the copy is made'

interface FoundShape extends TableShape {
  name: string
  identity: string
  kind: string
  persistence: string
  others: readonly string[]
}

const kinds: Readonly<Record<string, string>> = {
  v: 'a view',
  m: 'a materialized view',
  f: 'a foreign table',
  p: 'a partitioned table',
}

function faultsOf({ name, kind, persistence, ...found }: FoundShape, shape: TableShape): string[] {
  const table = `the table ${name}`
  if (kind !== 'r')
    return [`${name} is ${kinds[kind] ?? `of the kind ${kind}`}: replace it by the table that was created`]
  const quoted = (texts: readonly string[]) => texts.map((text) => `"${text}"`).join(', ')
  const lost = shape.columns.filter((column) => !found.columns.includes(column))
  const added = found.columns.filter((column) => !shape.columns.includes(column))
  const key = `(${shape.key.join(', ')})`
  return [
    ...(persistence === 'p'
      ? []
      : [`${table} is unlogged, so a crash empties it: ALTER TABLE ${name} SET LOGGED`]),
    ...(lost.length === 0 ? [] : [`${table} lacks the column ${quoted(lost)}: restore it as it was created`]),
    ...(added.length === 0
      ? []
      : [`${table} has the column ${quoted(added)}, which was not created: restore it as it was created`]),
    ...(found.key.join() === shape.key.join()
      ? []
      : [
          `${table} has no valid primary key ${key} that is checked immediately: ALTER TABLE ${name} ADD PRIMARY KEY ${key}, and restore the database if rows occur twice`,
        ]),
    ...shape.checks
      .filter((check) => !found.checks.includes(check))
      .map((check) => `${table} lacks a constraint: ALTER TABLE ${name} ADD ${check}`),
    ...found.checks
      .filter((check) => !shape.checks.includes(check))
      .map((check) => `${table} has the constraint ${check}: remove it`),
    ...found.others.map((other) => `${table} has ${other}: remove it`),
  ]
}

const areTexts = listOf(isText)
const areShapes = listOf(
  fields({
    name: isText,
    identity: isText,
    kind: isText,
    persistence: isText,
    columns: areTexts,
    key: areTexts,
    checks: areTexts,
    others: areTexts,
  }),
)
