import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Rig } from '../support/cluster/rig.js'
import { startTcpProxy } from '../support/cluster/tcp-proxy.js'
import { withoutNotices } from '../support/cluster/without-notices.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'

const program = fileURLToPath(new URL('../../dist/program/strandfast.js', import.meta.url))

/** Runs `strandfast cluster check`. */
function check(...args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, 'cluster', 'check', ...args], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

/** The lines of a level, without the level. */
const linesOf = (stdout: string, level: string) =>
  stdout
    .split('\n')
    .filter((line) => line.startsWith(level))
    .map((line) => line.slice(6).replace(/ {2,}/, ': '))

/** Changes each table at its creation, like an engine with different behaviour. */
const onEachTable = (change: string) => `
  CREATE FUNCTION change_table() RETURNS event_trigger LANGUAGE plpgsql AS $$
  DECLARE made record;
  BEGIN
    FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table'
      AND object_identity LIKE '%_segments' LOOP
      ${change}
    END LOOP;
  END $$;
  CREATE EVENT TRIGGER change_tables ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION change_table()`

describe.skipIf(noPostgres)('strandfast cluster check', () => {
  let postgres: TestPostgres

  beforeAll(async () => {
    postgres = await makePostgres({ settings: { fsync: 'on' } })
    await postgres.start()
  })

  afterAll(async () => {
    await postgres?.remove()
  })

  it('accepts a PostgreSQL server, warns that it has no standby, and leaves no table', async () => {
    const { code, stdout, stderr } = await check(postgres.url)
    expect({ code, stderr, fail: linesOf(stdout, 'fail') }, stdout).toEqual({ code: 0, stderr: '', fail: [] })
    expect(linesOf(stdout, 'warn')).toEqual([expect.stringContaining('standbys: Commits do not wait')])
    expect(linesOf(stdout, 'ok')).toHaveLength(16)
    expect(await postgres.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([])
  })

  it('accepts PostgreSQL 18 with two standbys, wherever the primary is in the list', async () => {
    const rig = await Rig.start(18, { fsync: 'on' })
    const hosts = rig.urls.toReversed().map((url) => new URL(url).host)
    const { code, stdout } = await check(`postgres://strandfast@${hosts.join(',')}/postgres`)
    await rig.remove()
    expect({ code, warn: linesOf(stdout, 'warn') }, stdout).toEqual({ code: 0, warn: [] })
    expect(stdout).toContain('2 of them connected')
    expect(stdout).toContain('PostgreSQL 18.')
  })

  it('rejects a database in which two rows can have the same key', async () => {
    const dropping =
      "EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', made.object_identity, made.objid::regclass || '_pkey');"
    await postgres.query('CREATE DATABASE without_key')
    const client = await postgres.connect('without_key')
    await client.query(onEachTable(dropping))
    await client.end()
    const { code, stdout } = await check(postgres.url.replace(/postgres$/, 'without_key'))
    expect(code, stdout).toBe(1)
    expect(linesOf(stdout, 'fail')).toEqual(
      expect.arrayContaining([
        expect.stringMatching('^schema: the table strandfast_check_\\w+_segments has no valid primary key'),
        expect.stringMatching('^error codes: Expected 23505 for a duplicate key, got no error'),
        expect.stringMatching('^races: 8 of 8 inserts of one key succeeded'),
      ]),
    )
    expect(stdout).toContain('do not use it')
  })

  it('detects a pooler, changed bytes, missing warnings, and a server that is not durable', async () => {
    const changing = `
      EXECUTE format('CREATE TRIGGER changing BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION cut_bytes()', made.object_identity);`
    const cutting = `CREATE FUNCTION cut_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.blocks = substr(NEW.blocks, 1, 1048575); RETURN NEW; END $$;`
    const hasty = await makePostgres()
    await hasty.start()
    const client = await hasty.connect()
    await client.query(cutting + onEachTable(changing))
    // Like a pooler, where another session may serve each statement.
    await client.query(
      `CREATE FUNCTION public.pg_backend_pid() RETURNS integer LANGUAGE sql AS 'SELECT (random() * 1000000)::integer'`,
    )
    await client.query('ALTER DATABASE postgres SET search_path = public, pg_catalog')
    await client.end()
    const proxy = await startTcpProxy(Number(new URL(hasty.url).port), withoutNotices)
    const { code, stdout } = await check(hasty.url.replace(/:\d+\//, `:${proxy.port}/`))
    await proxy.stop()
    await hasty.remove()
    expect({ code, fail: linesOf(stdout, 'fail') }).toEqual({
      code: 1,
      fail: [
        expect.stringContaining('disk: fsync = off'),
        expect.stringContaining('sessions: One connection was served by several'),
        expect.stringMatching('^schema: the table strandfast_check_\\w+_segments has the trigger changing'),
        expect.stringContaining('warnings: Warnings do not reach the client'),
        'bytes: The bytes read differ from the bytes written',
      ],
    })
  })

  it('drops its tables when it is stopped', async () => {
    const running = spawn(process.execPath, [program, 'cluster', 'check', postgres.url])
    const [first] = await once(running.stdout, 'data')
    expect(String(first)).toContain('servers')
    running.kill('SIGINT')
    running.stdout.resume()
    const [code] = await once(running, 'exit')
    expect(code).toBe(1)
    expect(await postgres.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([])
  })

  it('reports that no server can be reached, and a wrong command', async () => {
    const away = await check('postgres://strandfast@127.0.0.1:1/postgres')
    expect(away.code).toBe(1)
    expect(linesOf(away.stdout, 'fail')).toEqual([
      expect.stringContaining('servers: 127.0.0.1:1 cannot be used'),
    ])
    for (const args of [[], ['mysql://localhost/name'], [postgres.url, postgres.url]])
      expect((await check(...args)).code).toBe(78)
    expect((await check('--help')).stdout).toContain('check URL')
  })
})
