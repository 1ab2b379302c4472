import type { Table } from './tables.js'

/*
 * Changes of a table that leave its rows as they are. Some are mistakes of an operator, such as a dump that
 * was restored without its constraints.
 */

/** A change, and a part of the sentence with which it is refused. */
export interface SchemaChange {
  /** @returns the SQL; empty if the table lacks what it needs */
  sql(table: Table): string[]
  refusal: RegExp
}

export const schemaChanges: Readonly<Record<string, SchemaChange>> = {
  'no primary key': {
    sql: ({ name }) => [`ALTER TABLE ${name} DROP CONSTRAINT ${name}_pkey`],
    refusal: /has no valid primary key \(/,
  },
  'a deferred primary key': {
    sql: ({ name, key }) => [
      `ALTER TABLE ${name} DROP CONSTRAINT ${name}_pkey`,
      `ALTER TABLE ${name} ADD PRIMARY KEY (${key.join(', ')}) DEFERRABLE INITIALLY DEFERRED`,
    ],
    refusal: /has no valid primary key \(/,
  },
  'a longer primary key': {
    sql: (table) => [
      `ALTER TABLE ${table.name} DROP CONSTRAINT ${table.name}_pkey`,
      `ALTER TABLE ${table.name} ADD PRIMARY KEY (${[...table.key, valueOf(table)].join(', ')})`,
    ],
    refusal: /has no valid primary key \(/,
  },
  'an invalid index': {
    sql: ({ name }) => [`UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${name}_pkey'::regclass`],
    refusal: /has no valid primary key \(/,
  },
  'a column that may be NULL': {
    sql: (table) => [`ALTER TABLE ${table.name} ALTER ${valueOf(table)} DROP NOT NULL`],
    refusal: /lacks the column "\w+ \w+ NOT NULL"/,
  },
  'a column of another type': {
    sql: (table) => [
      `ALTER TABLE ${table.name} ALTER ${valueOf(table)} TYPE varchar USING ${valueOf(table)}::text`,
    ],
    refusal: /has the column "\w+ character varying NOT NULL", which was not created/,
  },
  'a column of another collation': {
    sql: ({ name, columns }) =>
      columns
        .filter(({ type }) => type === 'text')
        .map((column) => `ALTER TABLE ${name} ALTER ${column.name} TYPE text COLLATE "C"`),
    refusal: /has the column "\w+ text COLLATE "C" NOT NULL"/,
  },
  'a renamed column': {
    sql: (table) => [`ALTER TABLE ${table.name} RENAME ${valueOf(table)} TO renamed`],
    refusal: /lacks the column "\w+ \w+ NOT NULL"/,
  },
  'a further column': {
    sql: ({ name }) => [`ALTER TABLE ${name} ADD further text NOT NULL DEFAULT ''`],
    refusal: /has the column "further text NOT NULL", which was not created/,
  },
  'a trigger that swallows rows': {
    sql: ({ name }) => trigger(name, 'RETURN NULL;'),
    refusal: /has the trigger hostile_change/,
  },
  'a trigger that changes rows': {
    sql: ({ name, columns }) => {
      const bytes = columns.find(({ type }) => type === 'bytea')?.name
      return trigger(name, `NEW.${bytes} := NEW.${bytes} || '\\x00'::bytea; RETURN NEW;`)
    },
    refusal: /has the trigger hostile_change/,
  },
  'a rule': {
    sql: ({ name }) => [`CREATE RULE hostile_rule AS ON INSERT TO ${name} DO INSTEAD NOTHING`],
    refusal: /has the rule hostile_rule/,
  },
  'a view in its place': {
    sql: ({ name }) => [
      `ALTER TABLE ${name} RENAME TO hidden_${name}`,
      `CREATE VIEW ${name} AS TABLE hidden_${name}`,
    ],
    refusal: / is a view: replace it/,
  },
  'partitions in its place': {
    sql: ({ name, key }) => [
      `ALTER TABLE ${name} RENAME TO hidden_${name}`,
      `CREATE TABLE ${name} (LIKE hidden_${name} INCLUDING ALL) PARTITION BY LIST (${key[0]})`,
      `CREATE TABLE part_${name} PARTITION OF ${name} DEFAULT`,
      `INSERT INTO ${name} TABLE hidden_${name}`,
    ],
    refusal: / is a partitioned table: replace it/,
  },
  'a child table': {
    sql: ({ name }) => [`CREATE TABLE child_of_${name} () INHERITS (${name})`],
    refusal: /has the child table child_of_/,
  },
  'row-level security': {
    sql: ({ name }) => [`ALTER TABLE ${name} ENABLE ROW LEVEL SECURITY`],
    refusal: /has row-level security/,
  },
  'rows that a crash removes': {
    sql: ({ name }) => [`ALTER TABLE ${name} SET UNLOGGED`],
    refusal: /is unlogged, so a crash empties it/,
  },
  'a unique index': {
    sql: ({ name, key }) => [`CREATE UNIQUE INDEX hostile_index ON ${name} (${key.join(', ')})`],
    refusal: /has the index hostile_index/,
  },
  'a constraint': {
    sql: ({ name }) => [`ALTER TABLE ${name} ADD CHECK (false) NOT VALID`],
    refusal: /has the constraint CHECK \(false\) NOT VALID/,
  },
  'a foreign key to it': {
    sql: ({ name, key }) => [
      `CREATE TABLE refers_to_${name} AS SELECT ${key.join(', ')} FROM ${name}`,
      `ALTER TABLE refers_to_${name} ADD FOREIGN KEY (${key.join(', ')}) REFERENCES ${name}`,
    ],
    refusal: /has the foreign key refers_to_/,
  },
  'no constraint on its single row': {
    sql: ({ name }) =>
      name.endsWith('_cluster') ? [`ALTER TABLE ${name} DROP CONSTRAINT ${name}_one_check`] : [],
    refusal: /lacks a constraint: ALTER TABLE \w+ ADD CHECK \(\(one = 1\)\)/,
  },
}

/** The first column that is not part of the key. */
function valueOf({ columns, key }: Table): string {
  const column = columns.find(({ name }) => !key.includes(name))
  if (column === undefined) throw new Error('Expected a table with values')
  return column.name
}

function trigger(table: string, body: string): string[] {
  const name = `hostile_change_${table}`
  return [
    `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`,
    `CREATE TRIGGER ${name} BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
  ]
}
