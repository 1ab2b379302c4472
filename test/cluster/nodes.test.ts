import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { Membership } from '../../src/cluster/members/membership.js'
import { describeFaults } from '../../src/cluster/members/settings-digest.js'
import { type Joining, type NodeRow, NodeTable } from '../../src/cluster/database/nodes.js'
import { Session } from '../../src/cluster/database/session.js'
import { openCluster } from '../../src/cluster/database/open.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { LeaseMemory } from '../../src/protocol/lease-memory.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { startTransactionPooler } from '../support/postgres/transaction-pooler.js'

const statements = statementsOf('test')
const secret = { key: Buffer.alloc(32, 7), cluster: 'production' }

describe.skipIf(noPostgres)('the nodes of a cluster', () => {
  let postgres: TestPostgres
  const sessions: Session[] = []

  beforeAll(async () => {
    postgres = await makePostgres({ settings: { fsync: 'on' } })
    await postgres.start()
    for (const statement of statements.create) await postgres.query(statement)
  })

  afterAll(async () => {
    for (const session of sessions) await session.close()
    await postgres?.remove()
  })

  afterEach(async () => void (await postgres?.query('DELETE FROM test_nodes')))

  const table = async (own = secret, clock?: () => number) => {
    const session = await Session.open([postgres.url])
    sessions.push(session)
    return new NodeTable(session, statements, { secret: own, ...(clock && { clock }) })
  }
  const joining = (node: string): Joining => ({
    node,
    address: `${node}.example:8788`,
    formatMax: 1,
    settingsDigest: 'a'.repeat(64),
  })
  const found = async (nodes: NodeTable, name: string) =>
    (await nodes.all()).members.find(({ node }) => node === name)
  const rowOf = async (nodes: NodeTable, name: string) => {
    const row = await found(nodes, name)
    if (row === undefined) throw new Error(`Expected a node ${name}`)
    return row
  }
  const join = async (nodes: NodeTable, name: string) => {
    const row = await nodes.join(joining(name))
    if (row === undefined) throw new Error(`Expected ${name} to join`)
    return row
  }
  const next = (row: NodeRow, owns = '{}') => ({ ...row, beat: row.beat + 1, owns })

  it('join under a name once, and again when they were expelled, as a later incarnation', async () => {
    const nodes = await table()
    const first = await join(nodes, 'a')
    expect(first).toMatchObject({ ...joining('a'), ended: 0, beat: 0, alive: true })
    expect(await nodes.join(joining('a'))).toBeUndefined()
    expect(await nodes.beat(first, next(first, '{"0":3}'))).toBe('counted')
    const row = await rowOf(nodes, 'a')
    expect(row).toEqual(next(first, '{"0":3}'))
    expect(await nodes.expel(row)).toBe(true)
    const again = await nodes.join({ ...joining('a'), address: 'elsewhere:1' })
    expect(again).toMatchObject({ ended: first.incarnation, beat: 0, address: 'elsewhere:1', owns: '{}' })
    expect(again?.incarnation).toBeGreaterThan(first.incarnation)
    expect(await rowOf(nodes, 'a')).toEqual(again)
  })

  it('have a later incarnation each time, whatever the clock shows', async () => {
    const nodes = await table(secret, () => 5_000)
    const incarnations = []
    for (let round = 0; round < 3; round++) {
      incarnations.push((await join(nodes, 'clock')).incarnation)
      await nodes.expel(await rowOf(nodes, 'clock'))
    }
    expect(incarnations).toEqual([5_000, 5_001, 5_002])
  })

  it('beat no more once they are expelled, nor as an earlier incarnation', async () => {
    const nodes = await table()
    const first = await join(nodes, 'b')
    await nodes.expel(first)
    expect(await nodes.beat(first, next(first))).toBe('missed')
    const second = await join(nodes, 'b')
    expect(await nodes.beat(first, next(first))).toBe('missed')
    expect(await nodes.beat(second, next(second))).toBe('counted')
  })

  it('are not expelled by a node that saw an earlier beat', async () => {
    const nodes = await table()
    const seen = await join(nodes, 'c')
    await nodes.beat(seen, next(seen))
    expect(await nodes.expel(seen)).toBe(false)
    expect((await rowOf(nodes, 'c')).alive).toBe(true)
  })

  it('lets one of many through who join under one name, and one who expels', async () => {
    const tables = await Promise.all(Array.from({ length: 6 }, () => table()))
    const joined = await Promise.all(tables.map((nodes) => nodes.join(joining('d'))))
    expect(joined.filter((row) => row !== undefined)).toHaveLength(1)
    const seen = await rowOf(await table(), 'd')
    const expelled = await Promise.all(tables.map((nodes) => nodes.expel(seen)))
    expect(expelled.filter(Boolean)).toHaveLength(1)
    const again = await Promise.all(tables.map((nodes) => nodes.join(joining('d'))))
    expect(again.filter((row) => row !== undefined)).toHaveLength(1)
  })

  it.each([
    ['its address points elsewhere', "address = 'https://somebody.example'"],
    ['what it owns is changed', `owns = '{"version":"","link":"10.0.0.9:1"}'`],
    ['it is said to be gone', 'alive = false'],
    ['its beat is changed', 'beat = beat + 1'],
    ['its incarnation is changed', 'incarnation = incarnation + 1'],
    ['what it followed is changed', 'ended = 1'],
    ['its lease is changed', "settings_digest = '{}'"],
    ['its format is changed', 'format_max = 9'],
    ['its name is changed', "node = 'e' || node"],
  ])('are not believed where %s, and beat no more', async (name, change) => {
    const nodes = await table()
    const own = await join(nodes, name)
    await postgres.query(`UPDATE test_nodes SET ${change} WHERE node = $1`, [name])
    const { members, faults } = await nodes.all()
    expect(members.find(({ node }) => node.endsWith(name))).toBeUndefined()
    expect(faults.filter(({ node }) => node.endsWith(name))).toEqual([
      { node: expect.anything(), reason: expect.stringContaining('does not verify') },
    ])
    expect(await nodes.beat(own, next(own))).toBe('missed')
    expect(await nodes.expel(own)).toBe(false)
    // Whoever joins under that name knows nothing of an earlier one.
    if (!change.startsWith('node')) expect(await nodes.join(joining(name))).toMatchObject({ ended: 0 })
  })

  it('are those of one cluster, although another one has the same seed, and no row without it', async () => {
    const staging = await table({ ...secret, cluster: 'staging' })
    await join(staging, 'f')
    expect(await found(await table(), 'f')).toBeUndefined()
    expect(await found(staging, 'f')).toBeDefined()
    expect(await found(await table({ ...secret, key: Buffer.alloc(32, 8) }), 'f')).toBeUndefined()
  })

  /** A node with a lease of a second, in a time of its own. */
  const member = async (node: string) => {
    const time = { nowMs: 0 }
    const told = {
      expelled: [] as string[],
      faults: [] as string[],
      members: [] as string[],
      linked: [] as string[],
    }
    const lease = new LeaseMemory(undefined, () => time.nowMs)
    const nodes = await table()
    const membership = new Membership({
      about: joining(node),
      leaseMs: 1_000,
      leaseMsOf: () => 1_000,
      lease,
      nowMs: () => time.nowMs,
      connect: async () => nodes,
      changed: (members) => (told.members = members.map((one) => one.node)),
      answers: ({ node: name }) => told.linked.includes(name),
      trouble: () => {},
      distrusts: (faults) => (told.faults = describeFaults(faults)),
      expelled: (reason) => void told.expelled.push(reason),
    })
    await membership.join()
    await membership.step()
    return { membership, told, time, lease }
  }
  const saved = async (node: string) => {
    const [columns] = await postgres.query('SELECT * FROM test_nodes WHERE node = $1', [node])
    return Object.entries(columns ?? {})
  }
  const putBack = async (columns: [string, unknown][]) => {
    const [names, values] = [columns.map(([name]) => name), columns.map(([, value]) => value)]
    await postgres.query('DELETE FROM test_nodes WHERE node = $1', [values[0]])
    const places = names.map((_name, at) => `$${at + 1}`)
    await postgres.query(`INSERT INTO test_nodes (${names.join()}) VALUES (${places.join()})`, values)
  }

  it.each([
    ['alive is flipped', 'UPDATE test_nodes SET alive = false WHERE node = $1', 'does not verify'],
    ['what it owns is changed', "UPDATE test_nodes SET owns = '{}x' WHERE node = $1", 'does not verify'],
    ['it is removed', 'DELETE FROM test_nodes WHERE node = $1', 'is not there any more'],
  ])('has no lease any more and ends where its row is touched: %s', async (name, statement, says) => {
    const { membership, told, lease } = await member(name)
    expect(lease.holds()).toBe(true)
    await postgres.query(statement, [name])
    await membership.step()
    expect(told.expelled).toEqual([expect.stringContaining(says)])
    expect(lease.holds()).toBe(false)
  })

  it('has no lease any more and ends where an earlier row of it was put back', async () => {
    const { membership, told, lease } = await member('g')
    const earlier = await saved('g')
    await membership.step()
    await putBack(earlier)
    await membership.step()
    expect(told.expelled).toEqual([expect.stringContaining('is an earlier one that was put back')])
    expect(lease.holds()).toBe(false)
  })

  it('goes on where its row is as it wrote it, although the answer to a beat was lost', async () => {
    const { membership, told, lease } = await member('h')
    const row = await rowOf(await table(), 'h')
    await (await table()).beat(row, next(row))
    await membership.step()
    expect([told.expelled, lease.holds()]).toEqual([[], true])
    expect((await rowOf(await table(), 'h')).beat).toBe(row.beat + 2)
  })

  it('takes another one whose row is hidden for alive until that must be silent, and says so', async () => {
    const [other, watching] = [await member('i'), await member('j')]
    await watching.membership.step()
    const isMember = () => watching.told.members.includes('i')
    expect(isMember()).toBe(true)
    await postgres.query("UPDATE test_nodes SET address = 'https://somebody.example' WHERE node = 'i'")
    const at = async (nowMs: number) => {
      watching.time.nowMs = nowMs
      await watching.membership.step()
      return isMember()
    }
    expect([await at(200), await at(600), await at(1_000)]).toEqual([true, true, true])
    expect(watching.told.faults).toEqual([expect.stringContaining('The row of the node i does not verify')])
    const shown = watching.membership.members.find(({ node }) => node === 'i')
    expect(shown?.address).toBe('i.example:8788')
    expect([await at(1_200), await at(1_400)].at(-1)).toBe(false)
    // Its own beats count no more meanwhile.
    await other.membership.step()
    expect(other.told.expelled).toHaveLength(1)
    await postgres.query("DELETE FROM test_nodes WHERE node = 'i'")
    await watching.membership.step()
    expect(watching.told.faults).toEqual([])
  })

  it('expels no node that says by a link that it has a lease, whatever the table says', async () => {
    const [, watching] = [await member('m'), await member('n')]
    await watching.membership.step()
    watching.told.linked = ['m']
    for (const nowMs of [400, 800, 1_200]) {
      watching.time.nowMs = nowMs
      await watching.membership.step()
    }
    expect(watching.told.members).toContain('m')
    expect(await rowOf(await table(), 'm')).toMatchObject({ alive: true })
    expect(watching.told.faults).toEqual([expect.stringContaining('says by its link that it has one')])
    watching.told.linked = []
    await watching.membership.step()
    expect(watching.told.members).not.toContain('m')
    expect(watching.told.faults).toEqual([])
  })

  it('takes one that was expelled for gone, although a row of when it was alive was put back', async () => {
    const [, watching] = [await member('k'), await member('l')]
    await watching.membership.step()
    const alive = await saved('k')
    const nodes = await table()
    await nodes.expel(await rowOf(nodes, 'k'))
    // What was read is known for good once a later beat has counted.
    await watching.membership.step()
    await watching.membership.step()
    expect(watching.told.members).not.toContain('k')
    await putBack(alive)
    await watching.membership.step()
    expect(watching.told.members).not.toContain('k')
    expect((await watching.membership.look()).map(({ node }) => node)).not.toContain('k')
    expect(watching.told.faults).toEqual([expect.stringContaining('The row of the node k is an earlier one')])
  })

  it('are found however many rows there are, and more that are alive than are read are refused', async () => {
    const nodes = await table()
    await join(nodes, 'z')
    const add = (name: string, alive: boolean, count: number) =>
      postgres.query(`INSERT INTO test_nodes SELECT '${name}' || n, 1, 0, 0, ${alive}, '', 1, '', '{}', ''
        FROM generate_series(1, ${count}) AS n`)
    await add('ended', false, 3_000)
    expect(await found(nodes, 'z')).toMatchObject({ alive: true })
    expect((await nodes.all()).faults.length).toBeGreaterThan(100)
    expect(await nodes.join(joining('zz'))).toMatchObject({ ended: 0 })
    await add('false', true, limits.clusterNodesMax)
    expect(await found(nodes, 'z')).toMatchObject({ alive: true })
    await add('more', true, limits.clusterNodeRowsMax)
    await expect(nodes.all()).rejects.toThrow('has 256 or more that are alive')
    await postgres.query("DELETE FROM test_nodes WHERE node LIKE 'false%' OR node LIKE 'more%'")
    await postgres.query(
      "UPDATE test_nodes SET alive = true, owns = repeat('x', 1000000) WHERE node = 'ended1'",
    )
    await expect(nodes.all()).rejects.toThrow('Expected the rows of nodes')
    await postgres.query("DELETE FROM test_nodes WHERE node LIKE 'ended%'")
  })

  it.each([1, 2, 5])(
    'do not start by a pooler that lends connections for a transaction, out of %i',
    async (size) => {
      const pooler = await startTransactionPooler(Number(new URL(postgres.url).port), size)
      const url = postgres.url.replace(/:\d+\//, `:${pooler.port}/`)
      const opening = await openCluster({
        urls: [url],
        unreplicated: true,
        environment: 'development',
        rowKey: secret.key,
      })
      await pooler.stop()
      expect(opening).toMatchObject({
        because: 'unfit',
        detail: expect.stringContaining('connect without a pooler'),
      })
    },
  )
})
