import type { Client } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { connectPostgres, type SinkConnection } from '../../../src/outbound/postgres.js'
import type { SinkRow } from '../../../src/outbound/postgres-rows.js'
import { eventually } from '../../support/eventually.js'
import { makePostgres, noPostgres, type TestPostgres } from '../../support/postgres/postgres.js'

/** As many failures as make the sink look for a row at fault. */
const failures = limits.sinkBatchTriesMax

const row = (seq: number, body = '{}'): SinkRow => ({
  contentHash: seq.toString(16).padStart(64, '0'),
  agent: 'feed',
  seq,
  timestampHlc: '0199c5b8f2a4-0003',
  type: 'record',
  body: Buffer.from(body),
})

describe.skipIf(noPostgres)('a batch for PostgreSQL', () => {
  let postgres: TestPostgres
  let sink: SinkConnection
  let databases = 0
  let database: string
  let client: Client

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
  })
  afterAll(() => postgres.remove())

  async function connect(options = ''): Promise<void> {
    database = `facts_${databases++}`
    await postgres.query(`CREATE DATABASE ${database} ${options}`)
    client = await postgres.connect(database)
    const url = postgres.url.replace(/postgres$/, database)
    sink = await connectPostgres({ url, store: 'store' }, new AbortController().signal)
  }

  beforeEach(() => connect())
  afterEach(async () => {
    sink.close()
    await client.end()
  })

  function deliver(rows: readonly SinkRow[], more: { erased?: string[]; failures?: number } = {}) {
    const cursor = { blockNo: 1, contentHash: '' }
    return sink.deliver({ shard: 0, rows, erased: [], cursor, failures: 0, ...more })
  }

  const sequences = async (table: string) =>
    (await client.query<{ seq: string }>(`SELECT seq FROM ${table} ORDER BY seq`)).rows.map(({ seq }) => +seq)

  /**
   * Cancels the statement of a delivery that waits for a locked table, as `statement_timeout` does, and then
   * releases the lock, so that every later statement of the delivery succeeds.
   */
  async function cancelDuringLock(delivery: () => Promise<unknown>): Promise<unknown> {
    const holder = await postgres.connect(database)
    await holder.query('BEGIN; LOCK TABLE strandfast_records IN EXCLUSIVE MODE')
    const ended = delivery().catch((error: unknown) => error)
    const waiting = `SELECT pid FROM pg_stat_activity WHERE application_name = 'strandfast'
      AND datname = current_database() AND wait_event_type = 'Lock'`
    await eventually(async () => (await client.query(waiting)).rows.length > 0)
    await client.query(`SELECT pg_cancel_backend(pid) FROM (${waiting}) AS w`)
    await holder.query('COMMIT')
    await holder.end()
    return ended
  }

  it.each([1, 5])('is delivered again if a statement waited too long for a lock: %s rows', async (count) => {
    const rows = Array.from({ length: count }, (_none, seq) => row(seq))
    expect(await cancelDuringLock(() => deliver(rows, { failures }))).toMatchObject({ code: '57014' })
    expect(await sequences('strandfast_dead_letters')).toEqual([])
    expect(await sequences('strandfast_records')).toEqual([])
  })

  it('deletes no row if the removal of its body waited too long for a lock', async () => {
    await deliver([row(1)])
    const erased = [row(1).contentHash]
    expect(await cancelDuringLock(() => deliver([], { erased }))).toMatchObject({ code: '57014' })
    expect(await sequences('strandfast_records')).toEqual([1])
  })

  it.each(['XX000', '42P01'])('stores a row whose failure %s has passed by itself', async (code) => {
    await client.query(`CREATE SEQUENCE calls;
      CREATE FUNCTION first_fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('calls') = 1 THEN RAISE 'passing' USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER first_fails BEFORE INSERT ON strandfast_records FOR EACH ROW EXECUTE FUNCTION first_fails()`)
    expect(await deliver([row(1)], { failures })).toEqual({ stored: 1, refused: 0 })
  })

  it.each(['XX000', '42P01'])('stores a row that alone fails with %s as a dead letter', async (code) => {
    await client.query(`CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.body ? 'odd' THEN RAISE 'odd' USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER odd BEFORE INSERT ON strandfast_records FOR EACH ROW EXECUTE FUNCTION odd()`)
    const rows = [row(1), row(2, '{"odd":1}'), row(3)]
    await expect(deliver(rows, { failures: failures - 1 })).rejects.toMatchObject({ code })
    sink.close()
    const url = postgres.url.replace(/postgres$/, database)
    sink = await connectPostgres({ url, store: 'store' }, new AbortController().signal)
    expect(await deliver(rows, { failures })).toEqual({ stored: 2, refused: 1 })
    expect(await sequences('strandfast_dead_letters')).toEqual([2])
  })

  it.each(['57014', '53200'])('has fewer rows in each statement after each %s', async (code) => {
    await client.query(`CREATE FUNCTION few() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM added) > 2 THEN RAISE 'many' USING ERRCODE = '${code}'; END IF; RETURN NULL; END $$;
      CREATE TRIGGER few AFTER INSERT ON strandfast_records REFERENCING NEW TABLE AS added
        FOR EACH STATEMENT EXECUTE FUNCTION few()`)
    const rows = Array.from({ length: 7 }, (_none, seq) => row(seq))
    const url = postgres.url.replace(/postgres$/, database)
    for (const failed of [0, failures]) {
      await expect(deliver(rows, { failures: failed })).rejects.toMatchObject({ code })
      sink.close()
      sink = await connectPostgres({ url, store: 'store' }, new AbortController().signal)
    }
    expect(await deliver(rows, { failures: failures + 1 })).toEqual({ stored: 7, refused: 0 })
    expect(await sequences('strandfast_dead_letters')).toEqual([])
  })

  it('is not delivered to a database whose encoding lacks characters', async () => {
    sink.close()
    await client.end()
    await expect(connect("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")).rejects.toThrow(
      "The encoding of the database is LATIN1, which cannot store every text: create one with ENCODING 'UTF8'",
    )
  })

  it('keeps every text in a database of the encoding SQL_ASCII', async () => {
    sink.close()
    await client.end()
    await connect("ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    const text = 'é Ж 漢 😀 \u0001 \u007f \u2028'
    expect(await deliver([row(1, JSON.stringify({ text }))])).toEqual({ stored: 1, refused: 0 })
    const { rows } = await client.query<{ body: unknown }>('SELECT body FROM strandfast_records')
    expect(rows).toEqual([{ body: { text } }])
  })
})
