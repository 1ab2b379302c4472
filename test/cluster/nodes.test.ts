import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import type { Member, MemberAbout } from '../../src/cluster/members/member.js'
import { Membership } from '../../src/cluster/members/membership.js'
import { describeFaults } from '../../src/cluster/members/node-report.js'
import { NodeTable } from '../../src/cluster/database/nodes.js'
import { Session } from '../../src/cluster/database/session.js'
import { openCluster } from '../../src/cluster/database/open.js'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { LeaseMemory } from '../../src/protocol/lease-memory.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { noPooler, startTransactionPooler } from '../support/postgres/transaction-pooler.js'

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
  const joining = (node: string): MemberAbout => ({
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
  const next = (row: Member, report = '{}'): Member => ({ ...row, heartbeat: row.heartbeat + 1, report })

  it('join under a name once, and again after they were expelled, with a later incarnation', async () => {
    const nodes = await table()
    const first = await join(nodes, 'a')
    expect(first).toMatchObject({ ...joining('a'), ended: 0, heartbeat: 0, alive: true })
    expect(await nodes.join(joining('a'))).toBeUndefined()
    expect(await nodes.heartbeat(first, next(first, '{"0":3}'))).toBe('counted')
    const row = await rowOf(nodes, 'a')
    expect(row).toEqual(next(first, '{"0":3}'))
    expect(await nodes.expel(row)).toBe(true)
    const again = await nodes.join({ ...joining('a'), address: 'elsewhere:1' })
    expect(again).toMatchObject({
      ended: first.incarnation,
      heartbeat: 0,
      address: 'elsewhere:1',
      report: '{}',
    })
    expect(again?.incarnation).toBeGreaterThan(first.incarnation)
    expect(await rowOf(nodes, 'a')).toEqual(again)
  })

  it('get a later incarnation each time, whatever the clock shows', async () => {
    const nodes = await table(secret, () => 5_000)
    const incarnations = []
    for (let round = 0; round < 3; round++) {
      incarnations.push((await join(nodes, 'clock')).incarnation)
      await nodes.expel(await rowOf(nodes, 'clock'))
    }
    expect(incarnations).toEqual([5_000, 5_001, 5_002])
  })

  it('send no heartbeat after they were expelled, nor with an earlier incarnation', async () => {
    const nodes = await table()
    const first = await join(nodes, 'b')
    await nodes.expel(first)
    expect(await nodes.heartbeat(first, next(first))).toBe('missed')
    const second = await join(nodes, 'b')
    expect(await nodes.heartbeat(first, next(first))).toBe('missed')
    expect(await nodes.heartbeat(second, next(second))).toBe('counted')
  })

  it('are not expelled by a node that saw an earlier heartbeat', async () => {
    const nodes = await table()
    const seen = await join(nodes, 'c')
    await nodes.heartbeat(seen, next(seen))
    expect(await nodes.expel(seen)).toBe(false)
    expect((await rowOf(nodes, 'c')).alive).toBe(true)
  })

  it('have one winner when several join under one name, and when several expel one', async () => {
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
    ['the address', "address = 'https://attacker.example'"],
    ['the report', `owns = '{"version":"","link":"10.0.0.9:1"}'`],
    ['alive', 'alive = false'],
    ['the heartbeat', 'beat = beat + 1'],
    ['the incarnation', 'incarnation = incarnation + 1'],
    ['the previous incarnation', 'ended = 1'],
    ['the lease', "settings_digest = '{}'"],
    ['the format', 'format_max = 9'],
    ['the name', "node = 'e' || node"],
  ])(
    'reject a row in which %s was changed, and its node sends no heartbeat any more',
    async (name, change) => {
      const nodes = await table()
      const own = await join(nodes, name)
      await postgres.query(`UPDATE test_nodes SET ${change} WHERE node = $1`, [name])
      const { members, faults } = await nodes.all()
      expect(members.find(({ node }) => node.endsWith(name))).toBeUndefined()
      expect(faults.filter(({ node }) => node.endsWith(name))).toEqual([
        { node: expect.anything(), reason: expect.stringContaining('does not verify') },
      ])
      expect(await nodes.heartbeat(own, next(own))).toBe('missed')
      expect(await nodes.expel(own)).toBe(false)
      // A node that joins under the name of a rejected row does not know the earlier incarnation.
      if (!change.startsWith('node')) expect(await nodes.join(joining(name))).toMatchObject({ ended: 0 })
    },
  )

  it('belong to one cluster, even if another one has the same seed, and need the seed', async () => {
    const staging = await table({ ...secret, cluster: 'staging' })
    await join(staging, 'f')
    expect(await found(await table(), 'f')).toBeUndefined()
    expect(await found(staging, 'f')).toBeDefined()
    expect(await found(await table({ ...secret, key: Buffer.alloc(32, 8) }), 'f')).toBeUndefined()
  })

  /** A node with a lease of one second and a simulated clock. */
  const member = async (node: string) => {
    const time = { nowMs: 0 }
    const observed = {
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
      changed: (members) => (observed.members = members.map((one) => one.node)),
      answers: ({ node: name }) => observed.linked.includes(name),
      trouble: () => {},
      faultsChanged: (faults) => (observed.faults = describeFaults(faults)),
      expelled: (reason) => void observed.expelled.push(reason),
    })
    await membership.join()
    await membership.step()
    return { membership, observed, time, lease }
  }
  const saved = async (node: string) => {
    const [columns] = await postgres.query('SELECT * FROM test_nodes WHERE node = $1', [node])
    return Object.entries(columns ?? {})
  }
  const putBack = async (columns: [string, unknown][]) => {
    const [names, values] = [columns.map(([name]) => name), columns.map(([, value]) => value)]
    await postgres.query('DELETE FROM test_nodes WHERE node = $1', [values[0]])
    const placeholders = names.map((_name, at) => `$${at + 1}`)
    await postgres.query(`INSERT INTO test_nodes (${names.join()}) VALUES (${placeholders.join()})`, values)
  }

  it.each([
    ['alive is flipped', 'UPDATE test_nodes SET alive = false WHERE node = $1', 'does not verify'],
    ['what it owns is changed', "UPDATE test_nodes SET owns = '{}x' WHERE node = $1", 'does not verify'],
    ['it is removed', 'DELETE FROM test_nodes WHERE node = $1', 'is missing'],
  ])('lose the lease and end when their row is tampered with: %s', async (name, statement, says) => {
    const { membership, observed, lease } = await member(name)
    expect(lease.holds()).toBe(true)
    await postgres.query(statement, [name])
    await membership.step()
    expect(observed.expelled).toEqual([expect.stringContaining(says)])
    expect(lease.holds()).toBe(false)
  })

  it('lose the lease and end when an earlier version of their row is put back', async () => {
    const { membership, observed, lease } = await member('g')
    const earlier = await saved('g')
    await membership.step()
    await putBack(earlier)
    await membership.step()
    expect(observed.expelled).toEqual([expect.stringContaining('is an older version that was put back')])
    expect(lease.holds()).toBe(false)
  })

  it('continue when their row is as they wrote it, although the answer to a heartbeat was lost', async () => {
    const { membership, observed, lease } = await member('h')
    const row = await rowOf(await table(), 'h')
    await (await table()).heartbeat(row, next(row))
    await membership.step()
    expect([observed.expelled, lease.holds()]).toEqual([[], true])
    expect((await rowOf(await table(), 'h')).heartbeat).toBe(row.heartbeat + 2)
  })

  it('count a node without a valid row as alive until its lease must have expired, and report it', async () => {
    const [other, watching] = [await member('i'), await member('j')]
    await watching.membership.step()
    const isMember = () => watching.observed.members.includes('i')
    expect(isMember()).toBe(true)
    await postgres.query("UPDATE test_nodes SET address = 'https://attacker.example' WHERE node = 'i'")
    const at = async (nowMs: number) => {
      watching.time.nowMs = nowMs
      await watching.membership.step()
      return isMember()
    }
    expect([await at(200), await at(600), await at(1_000)]).toEqual([true, true, true])
    expect(watching.observed.faults).toEqual([
      expect.stringContaining('The row of the node i does not verify'),
    ])
    const shown = watching.membership.members.find(({ node }) => node === 'i')
    expect(shown?.address).toBe('i.example:8788')
    expect([await at(1_200), await at(1_400)].at(-1)).toBe(false)
    // The heartbeats of that node do not count any more.
    await other.membership.step()
    expect(other.observed.expelled).toHaveLength(1)
    await postgres.query("DELETE FROM test_nodes WHERE node = 'i'")
    await watching.membership.step()
    expect(watching.observed.faults).toEqual([])
  })

  it('do not expel a node that confirms over a link that it has a lease, whatever the table says', async () => {
    const [, watching] = [await member('m'), await member('n')]
    await watching.membership.step()
    watching.observed.linked = ['m']
    for (const nowMs of [400, 800, 1_200]) {
      watching.time.nowMs = nowMs
      await watching.membership.step()
    }
    expect(watching.observed.members).toContain('m')
    expect(await rowOf(await table(), 'm')).toMatchObject({ alive: true })
    expect(watching.observed.faults).toEqual([
      expect.stringContaining('confirms over its link that it has one'),
    ])
    watching.observed.linked = []
    await watching.membership.step()
    expect(watching.observed.members).not.toContain('m')
    expect(watching.observed.faults).toEqual([])
  })

  it('treat an expelled node as dead, although an earlier row of it was put back', async () => {
    const [, watching] = [await member('k'), await member('l')]
    await watching.membership.step()
    const alive = await saved('k')
    const nodes = await table()
    await nodes.expel(await rowOf(nodes, 'k'))
    // A row that was read is known permanently after a later heartbeat has counted.
    await watching.membership.step()
    await watching.membership.step()
    expect(watching.observed.members).not.toContain('k')
    await putBack(alive)
    await watching.membership.step()
    expect(watching.observed.members).not.toContain('k')
    expect((await watching.membership.look()).map(({ node }) => node)).not.toContain('k')
    expect(watching.observed.faults).toEqual([
      expect.stringContaining('The row of the node k is an older version'),
    ])
  })

  it('are found among any number of rows, and a read fails if it would omit rows marked alive', async () => {
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
    await expect(nodes.all()).rejects.toThrow('has 256 or more rows marked alive')
    await postgres.query("DELETE FROM test_nodes WHERE node LIKE 'false%' OR node LIKE 'more%'")
    await postgres.query("DELETE FROM test_nodes WHERE node LIKE 'ended%'")
  })

  it.each(['address', 'settings_digest', 'owns', 'mac'])(
    'ignore and replace a row with a long %s',
    async (column) => {
      const nodes = await table()
      await join(nodes, 'a')
      await join(nodes, 'b')
      const value =
        column === 'mac' ? "mac || decode(repeat('78', 1000000), 'hex')" : `${column} || repeat('x', 1000000)`
      await postgres.query(`UPDATE test_nodes SET ${column} = ${value} WHERE node = 'a'`)
      expect(await nodes.all()).toMatchObject({ members: [{ node: 'b' }], faults: [{ node: 'a' }] })
      expect(await nodes.join(joining('a'))).toMatchObject({ node: 'a', alive: true })
      expect((await nodes.all()).members).toHaveLength(2)
    },
  )

  it('ignore a row with a long name', async () => {
    const nodes = await table()
    await join(nodes, 'a')
    await postgres.query("UPDATE test_nodes SET node = node || repeat('x', 2048)")
    const { members, faults } = await nodes.all()
    expect(members).toEqual([])
    expect(faults).toHaveLength(1)
  })

  it.skipIf(noPooler).each([1, 2, 5])(
    'do not start behind a pooler in transaction mode with %i connections',
    async (size) => {
      const pooler = await startTransactionPooler(postgres.url, size)
      const opening = await openCluster({
        urls: [pooler.url],
        unreplicated: true,
        environment: 'development',
        rowKey: secret.key,
      })
      await pooler.stop()
      expect(opening).toMatchObject({
        because: 'unfit',
        detail: expect.stringContaining('connect nodes directly'),
      })
    },
  )
})
