import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LoadedNode, nodeSettings } from '../support/cluster/loaded-node.js'
import { Rig } from '../support/cluster/rig.js'
import { eventually } from '../support/eventually.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'
import { call } from '../support/server/server.js'

const noSpace = 'could not extend file: No space left on device'
const confirmsNothing = 'The database of the cluster confirms nothing'
/** Consecutive refusals among which an acknowledgement would show. */
const MORE_REFUSED = 6
const endConnections =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'strandfast-cluster'"
const opensLog = 'A shard is opening its log in the database of the cluster'

/** What a node reports at /readyz and in its log, and the codes with which it refuses writes. */
interface Why {
  ready: string
  log: string
  codes?: readonly string[]
}

const bothCodes = ['outcome_unknown', 'unavailable']

describe.skipIf(noPostgres)('a node under load with a failing database', () => {
  let rig: Rig
  let node: LoadedNode

  beforeAll(async () => {
    rig = await Rig.start(15, { fsync: 'on' })
    const init = await run(['cluster', 'init', '--shards', '2'], nodeSettings(rig.urls))
    expect(init).toMatchObject({ status: 0 })
    await rig.primary.query('CREATE ROLE node LOGIN')
    await rig.primary.query('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO node')
  })

  afterAll(() => rig?.remove())

  beforeEach(async () => {
    // The node uses the first server that accepts writes: the primary, as long as it lives.
    const urls = [rig.primary, ...rig.standbys].map(({ url }) => url)
    node = await LoadedNode.start(nodeSettings(urls, 'node'))
    await node.recovers()
  })

  afterEach(async () => {
    await node?.stop()
    await rig?.restore()
  })

  /** Resolves when the node reports the trouble at /readyz and in its log, and acknowledges nothing. */
  const reportsTrouble = async ({ ready, log, codes = bothCodes }: Why) => {
    await eventually(async () => {
      const { status, body } = await node.ready()
      return status === 503 && body.detail.startsWith(ready)
    })
    await eventually(() => node.server.stderr().includes(log))
    await eventually(async () => (await call(node.server, 'GET /v1/agents/one/head')).status === 503)
    // The outcome of the first writes is unknown; later ones are refused.
    await eventually(() => codes.every((code) => node.refused.some(({ body }) => body.code === code)))
    // Earlier writes may still be answered; later ones are not acknowledged.
    await eventually(acknowledgesNothing)
    expect(await acknowledgesNothing()).toBe(true)
  }
  /** Whether the node acknowledges nothing while it refuses some writes. */
  const acknowledgesNothing = async () => {
    const { size } = node.acknowledged
    const refused = node.refused.length
    await eventually(() => node.refused.length >= refused + MORE_REFUSED)
    return node.acknowledged.size === size
  }
  /** Checks that the node serves again without help, with all acknowledged writes. */
  const recovers = async () => {
    await node.recovers()
    expect(await node.lost()).toEqual([])
    for (const { status, headers } of node.refused)
      expect([status, headers.get('content-type'), headers.get('retry-after')]).toEqual([
        503,
        'application/problem+json',
        '1',
      ])
    expect(await node.server.halt()).toBe(0)
  }

  /** Changes a setting of the primary. Resolves when it is in force. */
  const set = async (name: string, value: string) => {
    await rig.primary.query(`ALTER SYSTEM SET ${name} = '${value}'`)
    rig.primary.reload()
    await eventually(async () => {
      const [row] = await rig.primary.query<Record<string, string>>(`SHOW ${name}`)
      return row?.[name] === value
    })
  }

  it('acknowledges nothing while the database is read-only, and recovers when it accepts writes', async () => {
    await rig.primary.query('ALTER SYSTEM SET default_transaction_read_only = on')
    rig.primary.reload()
    await reportsTrouble({ ready: confirmsNothing, log: 'is read-only: default_transaction_read_only is on' })
    const client = await rig.primary.connect()
    await client.query('SET default_transaction_read_only = off')
    await client.query('ALTER SYSTEM RESET default_transaction_read_only')
    await client.end()
    rig.primary.reload()
    await recovers()
  })

  it('acknowledges nothing while the database’s disk is full, and recovers when there is space', async () => {
    const raise = `BEGIN RAISE EXCEPTION '${noSpace}' USING ERRCODE = '53100'; END`
    await rig.primary.query(`CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ ${raise} $$`)
    await rig.primary.query(
      'CREATE TRIGGER no_space BEFORE INSERT ON strandfast_segments FOR EACH ROW EXECUTE FUNCTION no_space()',
    )
    await reportsTrouble({ ready: opensLog, log: `its disk is full: ${noSpace}` })
    await rig.primary.query('DROP FUNCTION no_space CASCADE')
    await recovers()
  })

  it('acknowledges nothing while no standby answers, and recovers when one does', async () => {
    for (const standby of rig.standbys) standby.pause()
    await reportsTrouble({
      ready: confirmsNothing,
      log: 'did not answer in time; it may be waiting for its standby',
    })
    rig.standbys[0]?.resume()
    await recovers()
    rig.standbys[1]?.resume()
  })

  it('keeps all acknowledged writes when the primary dies, and continues with the promoted standby', async () => {
    await rig.killPrimary()
    await rig.promote()
    await recovers()
    expect(node.server.stderr()).not.toContain('"fatal"')
  })

  it('acknowledges nothing through an old primary after a promotion, and recovers when that is stopped', async () => {
    const former = rig.primary
    await rig.cutOffStandbys()
    await rig.promote()
    await reportsTrouble({
      ready: confirmsNothing,
      log: 'did not answer in time; it may be waiting for its standby',
    })
    await rig.kill(former)
    await recovers()
  })

  it('acknowledges nothing while the database could lose acknowledged writes, and recovers afterwards', async () => {
    await set('full_page_writes', 'off')
    await rig.primary.query(endConnections)
    await reportsTrouble({
      ready: confirmsNothing,
      log: 'it runs with full_page_writes = off',
      codes: ['unavailable'],
    })
    await rig.primary.query('ALTER SYSTEM RESET full_page_writes')
    rig.primary.reload()
    await recovers()
  })

  it('warns when commits no longer wait for a standby', async () => {
    await set('synchronous_standby_names', '')
    await rig.primary.query(endConnections)
    await eventually(() => node.server.stderr().includes('no longer waits for a standby'))
    await rig.primary.query('ALTER SYSTEM RESET synchronous_standby_names')
    rig.primary.reload()
    await recovers()
  })

  it('acknowledges nothing while its role cannot write, and recovers when it can', async () => {
    await rig.primary.query('REVOKE INSERT ON strandfast_segments FROM node')
    await reportsTrouble({
      ready: opensLog,
      log: 'the role lacks a privilege: permission denied for table strandfast_segments',
    })
    await rig.primary.query('GRANT INSERT ON strandfast_segments TO node')
    await recovers()
  })

  it('acknowledges nothing while its role cannot log in, and recovers when it can', async () => {
    await rig.primary.query('ALTER ROLE node NOLOGIN')
    await rig.primary.query(endConnections)
    await reportsTrouble({
      ready: confirmsNothing,
      log: 'it refuses the login of the role: role \\"node\\" is not permitted to log in',
    })
    await rig.primary.query('ALTER ROLE node LOGIN')
    await recovers()
  })

  it('ends when the database has lost acknowledged segments', async () => {
    const ended = new Promise((resolve) => node.server.process.once('exit', resolve))
    // In one transaction: a segment that remains would let the log continue.
    await rig.primary.query(
      'LOCK TABLE strandfast_segments; DELETE FROM strandfast_segments WHERE segment > 2',
    )
    expect(await ended).toBe(1)
    expect(node.server.stderr()).toMatch(
      /"level":"fatal".*the database of the cluster has lost what it had acknowledged/,
    )
  })
})
