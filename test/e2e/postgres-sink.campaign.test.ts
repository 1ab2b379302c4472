import type { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { call, startServer, type ServerAddress, type TestServer } from '../support/server/server.js'
import { captureWorkers } from '../support/server/worker-capture.js'
import { eventually } from '../support/eventually.js'
import { startInProcess } from '../support/server/in-process-server.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'

interface Row {
  content_hash: string
  agent: string
  seq: string
  timestamp_hlc: string
  type: string
  body: unknown
}

let postgres: TestPostgres
let server: TestServer | undefined

const env = () => ({ SERVICE_INGEST_POSTGRES_URL: postgres.url, SERVICE_SHARDS: '2' })

async function start(dataDir?: string): Promise<TestServer> {
  server = await startServer({ env: env(), ...(dataDir === undefined ? {} : { dataDir }) })
  return server
}

/** Lines `{agent, data}` numbered from `from`, spread over agents of both shards. */
function lines(from: number, count: number): string {
  const numbers = Array.from({ length: count }, (_none, index) => from + index)
  return numbers
    .map((n) => JSON.stringify({ agent: `feed-${n % 8}`, data: { n, text: 'a\tb\\n"' } }))
    .join('\n')
}

async function ingest(to: ServerAddress, raw: string, path = '/v1/ingest'): Promise<void> {
  const headers = { 'content-type': 'application/x-ndjson' }
  const { status, body, text } = await call(to, `POST ${path}`, { raw, headers })
  expect(status, text).toBe(200)
  expect(body.rejected, text).toBe(0)
}

const stored = async () =>
  Number((await postgres.query<{ count: string }>('SELECT count(*) FROM strandfast_records'))[0]?.count)

/** 0 while the table does not exist or PostgreSQL is down. */
const storedSoFar = () => stored().catch(() => 0)

const rows = () => postgres.query<Row>('SELECT * FROM strandfast_records ORDER BY agent, seq')

async function figure(of: ServerAddress, name: string): Promise<number | undefined> {
  const { text } = await call(of, 'GET /metrics')
  const value = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  return value === undefined ? undefined : Number(value)
}

/** Every record of the agents on the server, in the form of a row. */
async function strandRows(of: ServerAddress, agents: readonly string[]): Promise<Row[]> {
  const found: Row[] = []
  for (const agent of agents) {
    let cursor: string | undefined
    do {
      const query = { type: 'time_range', from_ts: 0, order: 'asc', limit: 1000, cursor }
      const { body } = await call(of, `POST /v1/agents/${agent}/query`, { body: query })
      for (const record of body.records) {
        const { content_hash, seq, timestamp_hlc, type, payload } = record
        found.push({ content_hash, agent, seq: String(seq), timestamp_hlc, type, body: payload })
      }
      cursor = body.next_cursor ?? undefined
    } while (cursor !== undefined)
  }
  return found
}

/**
 * Makes the sink block in the middle of a batch of the records that `write` writes.
 * @returns a connection whose end unblocks it
 */
async function holdBatch(write: () => Promise<void>): Promise<Client> {
  const holder = await postgres.connect()
  await holder.query('BEGIN; LOCK TABLE strandfast_records IN SHARE MODE')
  await write()
  await eventually(async () => {
    const waiting = await postgres.query(
      "SELECT 1 FROM pg_stat_activity WHERE application_name = 'strandfast' AND wait_event_type = 'Lock'",
    )
    return waiting.length > 0
  })
  return holder
}

const feeds = Array.from({ length: 8 }, (_none, index) => `feed-${index}`)

describe.skipIf(noPostgres)('ingest into PostgreSQL', () => {
  beforeEach(async () => {
    postgres = await makePostgres()
    await postgres.start()
  })

  afterEach(async () => {
    await server?.stop()
    server = undefined
    await postgres.remove()
  })

  it('stores 4,000 records, each once, while PostgreSQL is killed and restarted twice', async () => {
    const running = await start()
    await ingest(running, lines(0, 1_000))
    await eventually(async () => (await storedSoFar()) > 0)
    await postgres.kill()
    await ingest(running, lines(1_000, 1_000))
    await postgres.start()
    await eventually(async () => (await storedSoFar()) === 2_000)
    // The second kill certainly happens during a transaction.
    await holdBatch(async () => {
      await ingest(running, lines(2_000, 1_000))
    })
    await postgres.kill()
    await ingest(running, lines(3_000, 1_000))
    await postgres.start()
    await eventually(async () => (await stored()) >= 4_000)
    await eventually(async () => (await figure(running, 'strandfast_sink_lag_records')) === 0)
    const found = await rows()
    expect(found.length).toBe(4_000)
    expect(found).toEqual(await strandRows(running, feeds))
    expect(await figure(running, 'strandfast_sink_failures_total')).toBeGreaterThan(0)
    expect(await postgres.query('SELECT * FROM strandfast_dead_letters')).toEqual([])
  })

  it('continues at its cursor after the server is killed during a batch', async () => {
    const running = await start()
    await ingest(running, lines(0, 1_000))
    await eventually(async () => (await storedSoFar()) === 1_000)
    const holder = await holdBatch(() => ingest(running, lines(1_000, 1_000)))
    await running.halt('SIGKILL')
    await holder.end()
    const again = await start(running.dataDir)
    await ingest(again, lines(2_000, 400))
    await eventually(async () => (await stored()) === 2_400)
    expect(await rows()).toEqual(await strandRows(again, feeds))
    // The interrupted batch was delivered again, and no confirmed record was.
    await eventually(async () => (await figure(again, 'strandfast_sink_lag_records')) === 0)
    expect(await figure(again, 'strandfast_sink_rows_total')).toBe(1_400)
  })

  it('stores a row that PostgreSQL refuses as a dead letter, and the other rows of its batch', async () => {
    const running = await start()
    const refused = ['{"n":-1,"text":"\\u0000"}', '{"n":-2,"deep":{"text":"a\\u0000b"}}']
    const bodies = Array.from({ length: 500 }, (_none, n) => refused[n - 250] ?? JSON.stringify({ n }))
    await ingest(running, bodies.join('\n'), '/v1/ingest/mixed')
    await eventually(async () => (await storedSoFar()) === 498)
    const letters = await postgres.query<Row & { reason: string; body: Buffer }>(
      'SELECT * FROM strandfast_dead_letters ORDER BY seq',
    )
    expect(letters.map(({ agent, seq, body }) => ({ agent, seq, body: body.toString() }))).toEqual([
      { agent: 'mixed', seq: '251', body: '{"n":-1,"text":"\\u0000"}' },
      { agent: 'mixed', seq: '252', body: '{"deep":{"text":"a\\u0000b"},"n":-2}' },
    ])
    expect(letters.map(({ reason }) => reason)).toEqual(['22P05', '22P05'])
    await ingest(running, '{"n":500}', '/v1/ingest/mixed')
    await eventually(async () => (await stored()) === 499)
    await eventually(async () => (await figure(running, 'strandfast_sink_rows_total')) === 499)
    expect(await figure(running, 'strandfast_sink_dead_letters_total')).toBe(2)
    expect(running.stderr()).toContain('PostgreSQL refused rows')
  })

  it('stores a row that a constraint of the database refuses as a dead letter, too', async () => {
    const running = await start()
    await ingest(running, '{"n":1}', '/v1/ingest/checked')
    await eventually(async () => (await storedSoFar()) === 1)
    await postgres.query(
      "ALTER TABLE strandfast_records ADD CONSTRAINT small CHECK ((body->>'n')::numeric < 10)",
    )
    await ingest(running, '{"n":2}\n{"n":11}\n{"n":3}', '/v1/ingest/checked')
    await eventually(async () => (await stored()) === 3)
    const letters = await postgres.query<{ reason: string }>('SELECT reason FROM strandfast_dead_letters')
    // The message is not stored: "Failing row contains (…)" would survive an erasure.
    expect(letters).toEqual([{ reason: '23514' }])
    expect(running.stderr()).not.toContain('Failing row')
  })

  it('stores a row that fails alone with another error class as a dead letter, and stops if all rows of the table fail', async () => {
    const running = await start()
    await ingest(running, '{"n":1}', '/v1/ingest/odd')
    await eventually(async () => (await storedSoFar()) === 1)
    await postgres.query(`CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.body->>'secret' IS NOT NULL THEN RAISE 'row %', NEW.body USING ERRCODE = 'XX000'; END IF;
      RETURN NEW; END $$`)
    await postgres.query(
      'CREATE TRIGGER odd BEFORE INSERT ON strandfast_records FOR EACH ROW EXECUTE FUNCTION odd()',
    )
    await ingest(running, '{"n":2}\n{"secret":"hidden-words"}\n{"n":3}', '/v1/ingest/odd')
    await eventually(async () => (await stored()) === 3)
    expect(await postgres.query('SELECT seq, reason FROM strandfast_dead_letters')).toEqual([
      { seq: '3', reason: 'XX000' },
    ])
    expect(running.stderr()).toContain('XX000')
    expect(running.stderr()).not.toContain('hidden-words')
    await postgres.query('ALTER TABLE strandfast_records ALTER COLUMN seq TYPE text')
    await postgres.query('ALTER TABLE strandfast_records RENAME COLUMN seq TO place')
    const failed = async () => (await figure(running, 'strandfast_sink_failures_total')) ?? 0
    const before = await failed()
    await ingest(running, '{"n":4}\n{"n":5}', '/v1/ingest/odd')
    await eventually(async () => (await failed()) >= before + limits.sinkBatchTriesMax + 1)
    expect((await postgres.query('SELECT 1 FROM strandfast_dead_letters')).length).toBe(1)
    await postgres.query('ALTER TABLE strandfast_records RENAME COLUMN place TO seq')
    await postgres.query('ALTER TABLE strandfast_records ALTER COLUMN seq TYPE bigint USING seq::bigint')
    await eventually(async () => (await stored()) === 5)
  })

  it('serves and accepts ingest before PostgreSQL is available, and delivers afterwards', async () => {
    await postgres.kill()
    const running = await start()
    await ingest(running, lines(0, 3_000))
    expect((await call(running, 'GET /readyz')).status).toBe(200)
    await eventually(async () => (await figure(running, 'strandfast_sink_lag_records')) === 3_000)
    expect(await figure(running, 'strandfast_sink_connected')).toBe(0)
    await postgres.start()
    await eventually(async () => (await storedSoFar()) === 3_000)
    await eventually(async () => (await figure(running, 'strandfast_sink_lag_records')) === 0)
    expect(await figure(running, 'strandfast_sink_connected')).toBe(1)
    expect(await rows()).toEqual(await strandRows(running, feeds))
  })

  it('waits for a locked table while ingest continues', async () => {
    const running = await start()
    await ingest(running, lines(0, 100))
    await eventually(async () => (await storedSoFar()) === 100)
    const holder = await holdBatch(() => ingest(running, lines(100, 10_000)))
    await eventually(async () => Number(await figure(running, 'strandfast_sink_lag_records')) > 0)
    expect((await call(running, 'GET /readyz')).status).toBe(200)
    // The server stops in time although its batch is blocked.
    expect(await running.halt()).toBe(0)
    await holder.end()
    const again = await start(running.dataDir)
    await eventually(async () => (await storedSoFar()) === 10_100)
    expect(await rows()).toEqual(await strandRows(again, feeds))
  })

  it('delivers only records of the ingest routes, from both shards', async () => {
    const running = await start()
    const write = (path: string, body: unknown) => call(running, `POST ${path}`, { body })
    expect((await write('/v1/collections/feed-0/records', { data: { by: 'record' } })).status).toBe(201)
    const batch = { records: [{ data: { by: 'batch' } }, { data: { by: 'batch' } }] }
    expect((await write('/v1/collections/feed-1/records/batch', batch)).status).toBe(201)
    await ingest(running, lines(0, 8))
    const one = await call(running, 'POST /v1/ingest/feed-0', { body: { by: 'ingest', n: 8 } })
    expect(one.status).toBe(201)
    const typed = { agent: 'feed-2', data: { n: 9 }, type: 'reading' }
    await ingest(running, JSON.stringify(typed))
    await eventually(async () => (await storedSoFar()) === 10)
    expect((await rows()).map(({ agent, seq, type }) => `${agent} ${seq} ${type}`)).toEqual([
      'feed-0 2 record',
      'feed-0 3 record',
      'feed-1 3 record',
      'feed-2 1 record',
      'feed-2 2 reading',
      ...feeds.slice(3).map((feed) => `${feed} 1 record`),
    ])
    expect((await rows())[1]).toMatchObject({ content_hash: one.body.content_hash, seq: `${one.body.seq}` })
    const cursors = await postgres.query('SELECT shard FROM strandfast_cursors ORDER BY shard')
    expect(cursors).toEqual([{ shard: 0 }, { shard: 1 }])
  })

  it('erases records that are erased on the server, dead letters too', async () => {
    const running = await start()
    await call(running, 'POST /v1/agents', { body: { name: 'private', zone: 'free' } })
    await ingest(running, '{"n":1}\n{"n":2,"text":"\\u0000"}\n{"n":3}', '/v1/ingest/private')
    await eventually(async () => (await storedSoFar()) === 2)
    for (const { content_hash } of (await strandRows(running, ['private'])).slice(0, 2)) {
      const erased = await call(running, `POST /v1/agents/private/records/${content_hash}/erase`)
      expect(erased.status, erased.text).toBe(200)
    }
    const bodies = async (table: string) =>
      (await postgres.query<{ body: unknown }>(`SELECT body FROM ${table} ORDER BY seq`)).map(
        ({ body }) => body,
      )
    await eventually(async () => (await bodies('strandfast_dead_letters'))[0] === null)
    expect(await bodies('strandfast_records')).toEqual([null, { n: 3 }])
  })

  it('erases in tables with a mandatory body, and in reasons of an older version', async () => {
    const running = await start()
    await call(running, 'POST /v1/agents', { body: { name: 'private', zone: 'free' } })
    await ingest(running, '{"n":1}\n{"n":2}', '/v1/ingest/private')
    await eventually(async () => (await storedSoFar()) === 2)
    await postgres.query('ALTER TABLE strandfast_records ALTER COLUMN body SET NOT NULL')
    await postgres.query(
      `INSERT INTO strandfast_dead_letters SELECT *, '23514: Failing row contains (hidden-words)', now()
       FROM (SELECT content_hash, agent, seq, timestamp_hlc, type, NULL::bytea FROM strandfast_records) AS r LIMIT 1`,
    )
    await running.halt()
    const again = await start(running.dataDir)
    await eventually(
      async () =>
        (await postgres.query("SELECT 1 FROM strandfast_dead_letters WHERE reason = '23514'")).length === 1,
    )
    const [row] = await strandRows(again, ['private'])
    const erased = await call(again, `POST /v1/agents/private/records/${row?.content_hash}/erase`)
    expect(erased.status, erased.text).toBe(200)
    await eventually(async () => (await rows()).length === 1)
    expect((await rows())[0]?.body).toEqual({ n: 2 })
  })

  it('continues after a shard thread has died', async () => {
    const capture = captureWorkers()
    const running = await startInProcess(env())
    try {
      await ingest(running, lines(0, 100))
      await eventually(async () => (await storedSoFar()) === 100)
      for (const shard of ['shard-0', 'shard-1']) capture.fail(capture.latest(shard))
      await eventually(async () => (await call(running, 'GET /readyz')).status === 503)
      await eventually(async () => (await call(running, 'GET /readyz')).status === 200)
      await ingest(running, lines(100, 100))
      await eventually(async () => (await stored()) === 200)
      expect(await rows()).toEqual(await strandRows(running, feeds))
    } finally {
      await running.stop()
      capture.release()
    }
  })

  it('keeps separate cursors for two servers in one database, and their records in one table', async () => {
    const one = await start()
    const other = await startServer({ env: { ...env(), SERVICE_MASTER_SEED: 'ab'.repeat(32) } })
    try {
      await Promise.all([ingest(one, lines(0, 2_000)), ingest(other, lines(0, 3_000))])
      await eventually(async () => (await storedSoFar()) === 5_000)
      const stores = await postgres.query('SELECT DISTINCT store FROM strandfast_cursors')
      expect(stores.length).toBe(2)
    } finally {
      await other.stop()
    }
  })

  it('starts from the beginning if the cursor belongs to another data directory', async () => {
    const running = await start()
    await ingest(running, lines(0, 100))
    await eventually(async () => (await storedSoFar()) === 100)
    await running.halt()
    // As after restoring a backup: the cursor in PostgreSQL is ahead of the log.
    await postgres.query('UPDATE strandfast_cursors SET block_no = 1000000')
    const again = await start(running.dataDir)
    await ingest(again, lines(100, 100))
    await eventually(async () => (await storedSoFar()) === 200)
    expect(await rows()).toEqual(await strandRows(again, feeds))
    expect(again.stderr()).toContain('delivering from the start')
  })

  it('delivers records from before it was configured', async () => {
    const before = await startServer({ env: { SERVICE_SHARDS: '2' } })
    await ingest(before, lines(0, 50))
    expect(await figure(before, 'strandfast_sink_connected')).toBeUndefined()
    await before.halt()
    await start(before.dataDir)
    await eventually(async () => (await storedSoFar()) === 50)
  })

  it('needs no permission to create tables after they exist', async () => {
    const first = await start()
    await ingest(first, lines(0, 10))
    await eventually(async () => (await storedSoFar()) === 10)
    await first.stop()
    await postgres.query(
      `CREATE ROLE writer LOGIN;
       REVOKE CREATE ON SCHEMA public FROM PUBLIC;
       GRANT SELECT, INSERT, UPDATE ON strandfast_records, strandfast_dead_letters, strandfast_cursors TO writer`,
    )
    const url = postgres.url.replace('strandfast@', 'writer@')
    server = await startServer({ env: { ...env(), SERVICE_INGEST_POSTGRES_URL: url } })
    await ingest(server, lines(0, 10))
    await eventually(async () => (await stored()) === 20)
  })

  it('follows a failover to another of its hosts, and logs why no host accepts it', async () => {
    await postgres.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
    await postgres.query('SELECT pg_reload_conf()')
    const standby = await makePostgres({ standbyOf: postgres })
    await standby.start()
    try {
      const [one, two] = [postgres, standby].map(({ url }) => new URL(url).host)
      const start = (url: string) =>
        startServer({ env: { SERVICE_INGEST_POSTGRES_URL: url, SERVICE_SHARDS: '2' } })
      // The standby is listed first, and skipped.
      server = await start(`postgres://strandfast@${two},${one}/postgres`)
      await ingest(server, lines(0, 500))
      await eventually(async () => (await storedSoFar()) === 500)
      await postgres.kill()
      await ingest(server, lines(500, 500))
      await eventually(() =>
        Promise.resolve(server?.stderr().includes(`${two}: The PostgreSQL server is read-only`) === true),
      )
      await standby.query('SELECT pg_promote(true, 60)')
      await standby.query("ALTER SYSTEM SET synchronous_standby_names = ''")
      await standby.query('SELECT pg_reload_conf()')
      const count = 'SELECT count(*) FROM strandfast_records'
      await eventually(
        async () => Number((await standby.query<{ count: string }>(count))[0]?.count) === 1_000,
      )
      for (const [url, words] of [
        [standby.url.replace('strandfast@', 'absent@'), 'it refuses the login of the role (SQLSTATE 28000)'],
        [`${standby.url}?sslmode=require`, 'it does not support TLS, which the URL requires'],
      ] as const) {
        await server.stop()
        server = await start(url)
        const { stderr } = server
        await eventually(() => Promise.resolve(stderr().includes(words)))
      }
    } finally {
      await standby.remove()
    }
  })
})
