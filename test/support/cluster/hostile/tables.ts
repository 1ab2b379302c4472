import type { Client } from 'pg'

/*
 * The tables of a cluster as the operator of its database sees them. Columns and keys are read from the
 * catalogue, so nothing here depends on the names of this version.
 */

/** A table with its columns in order, and those of its primary key. */
export interface Table {
  name: string
  columns: readonly Column[]
  key: readonly string[]
}

export interface Column {
  name: string
  /** The type in PostgreSQL: `bytea`, `text`, `integer`, `bigint`, `boolean`. */
  type: string
}

/** Values as text; bytes as `\x…`. */
export type Row = Readonly<Record<string, string | null>>

const columnsOfAll = (schema: string) => `
  SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type,
    coalesce(array_position(i.indkey::int2[], a.attnum), -1) AS key
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
  WHERE c.relkind = 'r' AND c.relnamespace = '${schema}'::regnamespace AND c.relname LIKE 'strandfast\\_%'
  ORDER BY c.relname, a.attnum`

/** All tables of a cluster. */
export async function tablesOf(database: Client, schema = 'public'): Promise<Table[]> {
  const { rows } = await database.query<Column & { table: string; key: number }>(columnsOfAll(schema))
  const names = [...new Set(rows.map(({ table }) => table))]
  return names.map((name) => {
    const own = rows.filter(({ table }) => table === name)
    const keys = own.filter(({ key }) => key >= 0).sort((one, other) => one.key - other.key)
    return {
      name,
      columns: own.map((column) => ({ name: column.name, type: column.type })),
      key: keys.map((column) => column.name),
    }
  })
}

/** All rows of a table, in the order of its key. */
export async function rowsOf(database: Client, table: Table, schema = 'public'): Promise<Row[]> {
  const shown = table.columns.map(({ name }) => `${name}::text AS ${name}`)
  const order = table.key.length === 0 ? '' : `ORDER BY ${table.key.map((name) => `t.${name}`).join(', ')}`
  const { rows } = await database.query<Record<string, string | null>>(
    `SELECT ${shown.join(', ')} FROM ${schema}.${table.name} t ${order}`,
  )
  return rows
}

/** A value as an SQL literal. */
export function literal(value: string | null | undefined, { type }: Pick<Column, 'type'>): string {
  return value === null || value === undefined ? 'NULL' : `'${value.replaceAll("'", "''")}'::${type}`
}

/** The condition that selects one row. */
export function isRow({ columns, key }: Table, row: Row): string {
  const named = columns.filter(({ name }) => key.includes(name))
  return named.map((column) => `${column.name} = ${literal(row[column.name], column)}`).join(' AND ')
}

/** Copies the tables as they are now into a separate schema, with their keys and constraints. */
export async function keep(database: Client, moment: string): Promise<void> {
  await database.query(`CREATE SCHEMA ${moment}`)
  const tables = await tablesOf(database)
  await inOne(
    database,
    tables.flatMap(({ name }) => copied(name, 'public', moment)),
  )
}

/** Copies the tables of another database, which has the same tables. */
export async function keepOther(database: Client, moment: string, other: Client): Promise<void> {
  await database.query(`CREATE SCHEMA ${moment}`)
  for (const table of await tablesOf(database)) {
    await database.query(`CREATE TABLE ${moment}.${table.name} (LIKE public.${table.name})`)
    for (const row of await rowsOf(other, table)) {
      const values = table.columns.map((column) => literal(row[column.name], column))
      await database.query(`INSERT INTO ${moment}.${table.name} VALUES (${values.join(', ')})`)
    }
  }
}

/** Restores the tables of a moment and their schema. */
export async function restore(database: Client, moment: string): Promise<void> {
  const tables = await tablesOf(database, moment)
  await inOne(database, [
    'DROP SCHEMA public CASCADE',
    'CREATE SCHEMA public',
    ...tables.flatMap(({ name }) => copied(name, moment, 'public')),
  ])
}

function copied(name: string, from: string, to: string): string[] {
  return [
    `CREATE TABLE ${to}.${name} (LIKE ${from}.${name} INCLUDING ALL)`,
    `INSERT INTO ${to}.${name} TABLE ${from}.${name}`,
  ]
}

/** Executes all statements in one transaction. */
export async function inOne(database: Client, statements: readonly string[]): Promise<void> {
  await database.query(['BEGIN', ...statements, 'COMMIT'].join(';\n')).catch(async (error: unknown) => {
    await database.query('ROLLBACK')
    throw error
  })
}
