import type { Client } from 'pg'
import { between, pick } from '../../../../scripts/crash-loop/seeded-random.mjs'
import { foreignAddress } from './arenas.js'
import { forgeries, forgeryKinds } from './forged-blocks.js'
import { forgedOwed, owed } from './history.js'
import { moments } from './hostile-cluster.js'
import { schemaChanges } from './schema-changes.js'
import { type Column, isRow, literal, type Row, type Table, rowsOf, tablesOf } from './tables.js'

/*
 * Random attacks on the tables by someone with access to the database and without the master seed: SQL built
 * from the columns and keys in the catalogue.
 */

export const kinds = [
  'delete',
  'cut',
  'flip',
  'relabel',
  'reorder',
  'replay',
  'swap shards',
  'take from another cluster',
  'roll back',
  'edit',
  'edit addresses',
  'edit as it is written',
  'forge',
  'change the schema',
] as const
export type Kind = (typeof kinds)[number]

/** The input of a random attack. */
interface Drawing {
  database: Client
  random: () => number
  /** A counter by which columns and variants are selected in round-robin order. */
  turn: number
  tables: readonly Table[]
}

/** Draws an attack on the tables as they are. @returns its SQL; empty if the tables lack what it needs */
export async function draw(kind: Kind, drawing: Omit<Drawing, 'tables'>): Promise<string[]> {
  return drawers[kind]({ ...drawing, tables: await tablesOf(drawing.database) })
}

const drawers: Record<Kind, (drawing: Drawing) => Promise<string[]>> = {
  delete: async (drawing) => {
    const { table, row } = await anyRow(drawing)
    const scope = pick(drawing.random, [isRow(table, row), isRow(table, row), sameGroup(table, row), 'true'])
    return [`DELETE FROM ${table.name} WHERE ${scope}`]
  },

  /** Removes the rows from one to the end of its group, or truncates a value, alternately. */
  cut: async (drawing) => {
    const { tables, turn, random } = drawing
    if (turn % 2 === 0) {
      const { table, row } = await anyRow({ ...drawing, tables: tables.filter(({ key }) => key.length > 1) })
      return [cutFrom(table, row)]
    }
    const { table, row } = await anyRow(drawing)
    const texts = values(table).filter(({ type }) => type === 'bytea' || type === 'text')
    const column = pick(random, texts)
    if (column === undefined) return []
    const { name } = column
    const to = between(random, 0, 40)
    return [
      `UPDATE ${table.name} SET ${name} = substring(${name} FROM 1 FOR ${to}) WHERE ${isRow(table, row)}`,
    ]
  },

  flip: async ({ database, random, tables, turn }) => {
    const all = tables.flatMap((table) => values(table).map((column) => ({ table, column })))
    const { table, column } = roundRobin(all, turn)
    const row = pick(random, await rowsOf(database, table))
    if (row === undefined) return []
    const changed = flipped(column, row[column.name] ?? null, random)
    return [`UPDATE ${table.name} SET ${column.name} = ${changed} WHERE ${isRow(table, row)}`]
  },

  /** Moves a row to another key; a row that has that key gets the old one. */
  relabel: async (drawing) => {
    const { table, row } = await anyRow(drawing)
    const name = pick(drawing.random, table.key)
    const column = table.columns.find((one) => one.name === name)
    if (column === undefined) return []
    const by = pick(drawing.random, [-1, 1, 1, 2])
    const other = column.type === 'text' ? `${row[name]}-${by}` : String(Number(row[name]) + by)
    return exchange(table, row, { ...row, [name]: other })
  },

  /** Exchanges the contents of two rows. */
  reorder: async (drawing) => {
    const { table, row } = await anyRow(drawing)
    const [group = ''] = table.key.length > 1 ? table.key : []
    const all = await rowsOf(drawing.database, table)
    const rows = all.filter((one) => one[group] === row[group] && !isSame(table, one, row))
    const other = pick(drawing.random, rows)
    return other === undefined ? [] : exchange(table, row, other)
  },

  /** Repeats a row: after the last of its group, or instead of a later one. */
  replay: async (drawing) => {
    const { table, row } = await anyRow(drawing)
    const rows = (await rowsOf(drawing.database, table)).filter(
      (one) => one[table.key[0] ?? ''] === row[table.key[0] ?? ''],
    )
    const last = rows.at(-1) ?? row
    const name = table.key[1] ?? table.key[0] ?? ''
    const key = Object.fromEntries(table.key.map((one) => [one, last[one] ?? null]))
    const after = { ...row, ...key, [name]: next(last[name] ?? null) }
    const replayed =
      drawing.random() < 0.5
        ? after
        : {
            ...row,
            ...Object.fromEntries(table.key.map((one) => [one, pick(drawing.random, rows)?.[one] ?? null])),
          }
    return [`DELETE FROM ${table.name} WHERE ${isRow(table, replayed)}`, insert(table, replayed)]
  },

  'swap shards': async ({ random, tables }) => {
    const table = pick(
      random,
      tables.filter(({ key }) => key.length > 1),
    )
    const [name] = table?.key ?? []
    if (table === undefined || name === undefined) return []
    const columns = table.columns.map((column) => (column.name === name ? `1 - ${name}` : column.name))
    return [
      `CREATE TEMP TABLE swapped ON COMMIT DROP AS SELECT * FROM ${table.name}`,
      `DELETE FROM ${table.name}`,
      `INSERT INTO ${table.name} SELECT ${columns.join(', ')} FROM swapped`,
    ]
  },

  'take from another cluster': (drawing) => takenFrom('other_cluster', drawing),
  'roll back': (drawing) =>
    takenFrom(
      pick(
        drawing.random,
        moments.filter((one) => one !== 'other_cluster'),
      ) ?? 'before',
      drawing,
    ),

  edit: async ({ tables }) => edits(tables),
  'edit addresses': async ({ tables }) => foreignAddresses(tables),
  'edit as it is written': async ({ tables }) => editing(tables),

  forge: async ({ database, random, turn }) => {
    const sql = await forgeries(database, roundRobin(forgeryKinds, turn), random)
    return sql === undefined ? [] : [sql]
  },

  'change the schema': async ({ random, tables, turn }) => {
    const table = pick(random, tables)
    return table === undefined ? [] : roundRobin(Object.values(schemaChanges), turn).sql(table)
  },
}

/** Replaces each text about the debt by another one with the same CRC-32. */
export function edits(tables: readonly Table[]): string[] {
  return tables.flatMap((table) =>
    table.columns
      .filter(({ type }) => type === 'bytea')
      .map(({ name }) => `UPDATE ${table.name} SET ${name} = ${edited(name)} WHERE ${has(name)}`),
  )
}

/** The same for rows as they are written: the writer sees no difference. */
export function editing(tables: readonly Table[]): string[] {
  return tables.flatMap((table) => {
    const bytes = table.columns.filter(({ type }) => type === 'bytea')
    if (bytes.length === 0) return []
    const changes = bytes.map(
      ({ name }) => `IF ${has(`NEW.${name}`)} THEN NEW.${name} := ${edited(`NEW.${name}`)}; END IF;`,
    )
    const name = `hostile_change_${table.name}`
    return [
      `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${changes.join(' ')} RETURN NEW; END $$`,
      `CREATE TRIGGER ${name} BEFORE INSERT OR UPDATE ON ${table.name} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
    ]
  })
}

const [from, to] = [owed, forgedOwed].map((text) => `'\\x${Buffer.from(text).toString('hex')}'::bytea`)
const has = (name: string) => `position(${from} IN ${name}) > 0`
const edited = (name: string) => `overlay(${name} PLACING ${to} FROM position(${from} IN ${name}))`

/** Replaces everything that looks like the address of a console by an attacker's. */
export function foreignAddresses(tables: readonly Table[]): string[] {
  return tables.flatMap((table) =>
    table.columns
      .filter(({ type }) => type === 'text')
      .map(({ name }) => `UPDATE ${table.name} SET ${name} = '${foreignAddress}' WHERE ${name} LIKE 'http%'`),
  )
}

/** Removes the rows of a group from one on. */
export function cutFrom(table: Table, row: Row): string {
  const [first, ...others] = table.key
  const later =
    others.length === 0
      ? 'true'
      : `(${others.join(', ')}) >= (${others.map((name) => literal(row[name], columnOf(table, name))).join(', ')})`
  return `DELETE FROM ${table.name} WHERE ${first} = ${literal(row[first ?? ''], columnOf(table, first ?? ''))} AND ${later}`
}

/**
 * Replaces a value, a row, a group, a table or all tables by those of another moment, or of another cluster.
 */
async function takenFrom(moment: (typeof moments)[number], drawing: Drawing): Promise<string[]> {
  const { random, tables, database, turn } = drawing
  const scope = roundRobin(['value', 'row', 'group', 'table', 'all'], turn)
  const table = pick(random, tables)
  if (table === undefined) return []
  // All tables of another cluster would be that cluster.
  if (scope === 'all' && moment !== 'other_cluster')
    return tables.flatMap((one) => replaced(one, moment, 'true'))
  if (scope === 'all' || scope === 'table') return replaced(table, moment, 'true')
  const theirs = pick(random, await rowsOf(database, table, moment))
  if (theirs === undefined) return []
  if (scope === 'group') return replaced(table, moment, sameGroup(table, theirs))
  if (scope === 'row') return replaced(table, moment, isRow(table, theirs))
  const column = pick(random, values(table))
  return column === undefined
    ? []
    : [
        `UPDATE ${table.name} SET ${column.name} = ${literal(theirs[column.name], column)} WHERE ${isRow(table, theirs)}`,
      ]
}

/** Replaces rows of a table by those of another moment. */
export function replaced({ name }: Pick<Table, 'name'>, moment: string, where: string): string[] {
  return [
    `DELETE FROM ${name} WHERE ${where}`,
    `INSERT INTO ${name} SELECT * FROM ${moment}.${name} WHERE ${where}`,
  ]
}

/** Draws a row and its table. The log is drawn more often, because it has the most rows. */
async function anyRow({ database, random, tables }: Drawing): Promise<{ table: Table; row: Row }> {
  for (;;) {
    const table = pick(random, [...tables, ...tables.filter(({ name }) => name.endsWith('segments'))])
    const row = table && pick(random, await rowsOf(database, table))
    if (table !== undefined && row !== undefined) return { table, row }
  }
}

function roundRobin<T>(some: readonly T[], turn: number): T {
  const [found] = some.slice(turn % some.length)
  if (found === undefined) throw new Error('Nothing to draw from')
  return found
}

function values({ columns, key }: Table): Column[] {
  return columns.filter(({ name }) => !key.includes(name))
}

function columnOf({ columns }: Table, name: string): Column {
  const column = columns.find((one) => one.name === name)
  if (column === undefined) throw new Error(`Expected a column ${name}`)
  return column
}

/** The condition for all rows with the same first column of the key: those of one shard. */
function sameGroup(table: Table, row: Row): string {
  const [first = ''] = table.key
  return `${first} = ${literal(row[first], columnOf(table, first))}`
}

function isSame({ key }: Table, one: Row, other: Row): boolean {
  return key.every((name) => one[name] === other[name])
}

function insert(table: Table, row: Row): string {
  return `INSERT INTO ${table.name} VALUES (${table.columns.map((column) => literal(row[column.name], column)).join(', ')})`
}

/** Exchanges the keys of two rows; the second one may not exist. */
function exchange(table: Table, one: Row, other: Row): string[] {
  const renamed = table.columns.map(({ name, type }) =>
    table.key.includes(name)
      ? `CASE WHEN ${isRow(table, one)} THEN ${literal(other[name], { type })} ELSE ${literal(one[name], { type })} END`
      : name,
  )
  const either = `(${isRow(table, one)}) OR (${isRow(table, other)})`
  return [
    `CREATE TEMP TABLE exchanged ON COMMIT DROP AS SELECT ${renamed.map((value, at) => `${value} AS ${table.columns[at]?.name}`).join(', ')} FROM ${table.name} WHERE ${either}`,
    `DELETE FROM ${table.name} WHERE ${either}`,
    `INSERT INTO ${table.name} SELECT * FROM exchanged`,
  ]
}

function next(value: string | null): string {
  return /^-?\d+$/.test(value ?? '') ? String(Number(value) + 1) : `${value}-again`
}

/** A slightly different value, as SQL. */
function flipped({ name, type }: Column, value: string | null, random: () => number): string {
  const far = ['0', '-1', '2147483647', '1']
  switch (type) {
    case 'boolean':
      return `NOT ${name}`
    case 'bytea': {
      const bits = value === null ? 0 : (value.length - 2) * 4
      const bit = between(random, 0, bits - 1)
      return bits === 0 ? `'\\x00'::bytea` : `set_bit(${name}, ${bit}, 1 - get_bit(${name}, ${bit}))`
    }
    case 'text': {
      const at = between(random, 1, Math.max(1, value?.length ?? 1))
      return `overlay(${name} PLACING '${pick(random, ['0', '9', 'a', '~', '\n'])}' FROM ${at} FOR 1)`
    }
    default:
      return pick(random, [`${name} + 1`, `${name} - 1`, `${name} + ${between(random, 2, 9)}`, ...far]) ?? '0'
  }
}
