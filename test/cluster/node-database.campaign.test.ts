import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LoadedNode, nodeSettings } from '../support/cluster/loaded-node.js'
import { Rig } from '../support/cluster/rig.js'
import { eventually } from '../support/eventually.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'
import { call } from '../support/server/server.js'

const noRoom = 'could not extend file: No space left on device'
const confirmsNothing = 'The database of the cluster confirms nothing'
/** Refusals in a row in which an acknowledgement would show. */
const MORE_REFUSED = 6
const endConnections =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'strandfast-cluster'"
const opensItsLog = 'A shard is opening its log in the database of the cluster'

/** What a node says of itself and in its log, and how it refuses writes, those that were under way at first among them. */
interface Why {
  ready: string
  log: string
  codes?: readonly string[]
}

const bothCodes = ['outcome_unknown', 'unavailable']

describe.skipIf(noPostgres)('a node under load whose database gets into trouble', () => {
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
    // It takes the first that takes writes: the primary, as long as that lives.
    const urls = [rig.primary, ...rig.standbys].map(({ url }) => url)
    node = await LoadedNode.start(nodeSettings(urls, 'node'))
    await node.goesOn()
  })

  afterEach(async () => {
    await node?.stop()
    await rig?.restore()
  })

  /** Resolves when the node says why it does not serve, its log does, and it acknowledges nothing. */
  const sayingWhy = async ({ ready, log, codes = bothCodes }: Why) => {
    await eventually(async () => {
      const { status, body } = await node.ready()
      return status === 503 && body.detail.startsWith(ready)
    })
    await eventually(() => node.server.stderr().includes(log))
    await eventually(async () => (await call(node.server, 'GET /v1/agents/one/head')).status === 503)
    // What was under way at first is known to nobody; what comes later is refused.
    await eventually(() => codes.every((code) => node.refused.some(({ body }) => body.code === code)))
    // Answers to what was written before may come yet; nothing is acknowledged that comes from then on.
    await eventually(acknowledgesNothing)
    expect(await acknowledgesNothing()).toBe(true)
  }
  /** Whether it acknowledges nothing while it refuses some writes. */
  const acknowledgesNothing = async () => {
    const { size } = node.acknowledged
    const refused = node.refused.length
    await eventually(() => node.refused.length >= refused + MORE_REFUSED)
    return node.acknowledged.size === size
  }
  /** It serves again by itself, with all that it had acknowledged. */
  const goesOn = async () => {
    await node.goesOn()
    expect(await node.lost()).toEqual([])
    for (const { status, headers } of node.refused)
      expect([status, headers.get('content-type'), headers.get('retry-after')]).toEqual([
        503,
        'application/problem+json',
        '1',
      ])
    expect(await node.server.halt()).toBe(0)
  }

  /** Resolves once the primary goes by it. */
  const set = async (name: string, value: string) => {
    await rig.primary.query(`ALTER SYSTEM SET ${name} = '${value}'`)
    rig.primary.reload()
    await eventually(async () => {
      const [row] = await rig.primary.query<Record<string, string>>(`SHOW ${name}`)
      return row?.[name] === value
    })
  }

  it('acknowledges nothing while it only reads, and goes on when it takes writes again', async () => {
    await rig.primary.query('ALTER SYSTEM SET default_transaction_read_only = on')
    rig.primary.reload()
    await sayingWhy({ ready: confirmsNothing, log: 'only reads: default_transaction_read_only is on' })
    const client = await rig.primary.connect()
    await client.query('SET default_transaction_read_only = off')
    await client.query('ALTER SYSTEM RESET default_transaction_read_only')
    await client.end()
    rig.primary.reload()
    await goesOn()
  })

  it('acknowledges nothing while its disk is full, and goes on when it has room', async () => {
    const raise = `BEGIN RAISE EXCEPTION '${noRoom}' USING ERRCODE = '53100'; END`
    await rig.primary.query(`CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ ${raise} $$`)
    await rig.primary.query(
      'CREATE TRIGGER no_room BEFORE INSERT ON strandfast_segments FOR EACH ROW EXECUTE FUNCTION no_room()',
    )
    await sayingWhy({ ready: opensItsLog, log: `its disk is full: ${noRoom}` })
    await rig.primary.query('DROP FUNCTION no_room CASCADE')
    await goesOn()
  })

  it('acknowledges nothing while no standby answers, and goes on when one does', async () => {
    for (const standby of rig.standbys) standby.pause()
    await sayingWhy({
      ready: confirmsNothing,
      log: 'did not answer in time, as when it waits for its standby',
    })
    rig.standbys[0]?.resume()
    await goesOn()
    rig.standbys[1]?.resume()
  })

  it('has all that it acknowledged when the primary dies, and goes on with the standby that is promoted', async () => {
    await rig.killPrimary()
    await rig.promote()
    await goesOn()
    expect(node.server.stderr()).not.toContain('"fatal"')
  })

  it('acknowledges nothing by a primary that lives on beside the one that was promoted, and goes on when it is stopped', async () => {
    const former = rig.primary
    await rig.cutOffStandbys()
    await rig.promote()
    await sayingWhy({
      ready: confirmsNothing,
      log: 'did not answer in time, as when it waits for its standby',
    })
    await rig.kill(former)
    await goesOn()
  })

  it('acknowledges nothing while it would lose what it has acknowledged, and goes on when it keeps it', async () => {
    await set('full_page_writes', 'off')
    await rig.primary.query(endConnections)
    await sayingWhy({
      ready: confirmsNothing,
      log: 'it runs with full_page_writes = off',
      codes: ['unavailable'],
    })
    await rig.primary.query('ALTER SYSTEM RESET full_page_writes')
    rig.primary.reload()
    await goesOn()
  })

  it('is warned of once no commit waits for a standby any more', async () => {
    await set('synchronous_standby_names', '')
    await rig.primary.query(endConnections)
    await eventually(() => node.server.stderr().includes('waits for a standby any more'))
    await rig.primary.query('ALTER SYSTEM RESET synchronous_standby_names')
    rig.primary.reload()
    await goesOn()
  })

  it('acknowledges nothing while its role may not write, and goes on when it may', async () => {
    await rig.primary.query('REVOKE INSERT ON strandfast_segments FROM node')
    await sayingWhy({
      ready: opensItsLog,
      log: 'the role has no right to it: permission denied for table strandfast_segments',
    })
    await rig.primary.query('GRANT INSERT ON strandfast_segments TO node')
    await goesOn()
  })

  it('acknowledges nothing while its role may not log in, and goes on when it may', async () => {
    await rig.primary.query('ALTER ROLE node NOLOGIN')
    await rig.primary.query(endConnections)
    await sayingWhy({
      ready: confirmsNothing,
      log: 'it does not let the role in: role \\"node\\" is not permitted to log in',
    })
    await rig.primary.query('ALTER ROLE node LOGIN')
    await goesOn()
  })

  it('ends where it has lost what it had acknowledged', async () => {
    const ended = new Promise((resolve) => node.server.process.once('exit', resolve))
    // All at once: what comes behind a segment that stays would be a log that goes on.
    await rig.primary.query(
      'LOCK TABLE strandfast_segments; DELETE FROM strandfast_segments WHERE segment > 2',
    )
    expect(await ended).toBe(1)
    expect(node.server.stderr()).toMatch(
      /"level":"fatal".*the database of the cluster has lost what it had acknowledged/,
    )
  })
})
