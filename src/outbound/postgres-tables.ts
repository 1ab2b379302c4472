import type { Client } from 'pg'

const tables = {
  strandfast_records: `CREATE TABLE strandfast_records (
    content_hash text PRIMARY KEY,
    agent text NOT NULL,
    seq bigint NOT NULL,
    timestamp_hlc text NOT NULL,
    type text NOT NULL,
    body jsonb
  )`,
  // The body is stored as bytes, because PostgreSQL may have refused it as text.
  strandfast_dead_letters: `CREATE TABLE strandfast_dead_letters (
    content_hash text PRIMARY KEY,
    agent text NOT NULL,
    seq bigint NOT NULL,
    timestamp_hlc text NOT NULL,
    type text NOT NULL,
    body bytea,
    reason text NOT NULL,
    refused_at timestamptz NOT NULL DEFAULT now()
  )`,
  strandfast_cursors: `CREATE TABLE strandfast_cursors (
    store text,
    shard integer,
    block_no bigint NOT NULL,
    content_hash text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (store, shard)
  )`,
}

export const SQLSTATE_CHARS = 5

/** Until version 0.4.0, reasons contained the message of PostgreSQL, which can quote the refused row. */
const shortenReasons = `UPDATE strandfast_dead_letters SET reason = left(reason, ${SQLSTATE_CHARS})
  WHERE length(reason) > ${SQLSTATE_CHARS}`

/** The target of COPY within one transaction; the table exists until the connection ends. */
const staging = `CREATE TEMPORARY TABLE strandfast_staging (
    content_hash text,
    agent text,
    seq bigint,
    timestamp_hlc text,
    type text,
    body jsonb
  ) ON COMMIT DELETE ROWS`

/** An arbitrary key of the advisory lock against other servers that create tables at the same time. */
const CREATION_LOCK = 7_236_528_301

/**
 * Creates missing tables, and the staging table of the connection. It first checks which tables exist,
 * because IF NOT EXISTS requires the privilege to create tables even if all exist.
 * @throws Error if PostgreSQL refuses or is unreachable
 */
export async function makeTables(client: Client): Promise<void> {
  if ((await missing(client)).length > 0) {
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock($1)', [CREATION_LOCK])
    for (const name of await missing(client)) await client.query(tables[name])
    await client.query('COMMIT')
  }
  await client.query(shortenReasons)
  await client.query(staging)
}

type SinkTableName = keyof typeof tables

async function missing(client: Client): Promise<SinkTableName[]> {
  const absent: SinkTableName[] = []
  for (const name of tableNames) {
    const { rows } = await client.query<{ there: unknown }>('SELECT to_regclass($1) IS NOT NULL AS there', [
      name,
    ])
    if (rows[0]?.there !== true) absent.push(name)
  }
  return absent
}

const tableNames: readonly SinkTableName[] = [
  'strandfast_records',
  'strandfast_dead_letters',
  'strandfast_cursors',
]
