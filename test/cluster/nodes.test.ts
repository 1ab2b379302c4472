import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Joining, NodeTable } from '../../src/outbound/cluster/nodes.js'
import { Session } from '../../src/outbound/cluster/session.js'
import { statementsOf } from '../../src/outbound/cluster/statements.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'

const statements = statementsOf('test')

describe.skipIf(noPostgres)('the nodes of a cluster', () => {
  let postgres: TestPostgres
  const sessions: Session[] = []

  beforeAll(async () => {
    postgres = await makePostgres()
    await postgres.start()
    for (const statement of statements.create) await postgres.query(statement)
  })

  afterAll(async () => {
    for (const session of sessions) await session.close()
    await postgres?.remove()
  })

  const table = async () => {
    const session = await Session.open([postgres.url])
    sessions.push(session)
    return new NodeTable(session, statements)
  }
  const joining = (node: string): Joining => ({
    node,
    address: `${node}.example:8788`,
    formatMax: 1,
    settingsDigest: 'a'.repeat(64),
  })
  const rowOf = async (nodes: NodeTable, name: string) => {
    const row = (await nodes.all()).find(({ node }) => node === name)
    if (row === undefined) throw new Error(`Expected a node ${name}`)
    return row
  }

  it('join under a name once, and again when they were expelled, as another incarnation', async () => {
    const nodes = await table()
    expect(await nodes.join(joining('a'))).toBe(1)
    expect(await nodes.join(joining('a'))).toBeUndefined()
    expect(await nodes.beat({ node: 'a', incarnation: 1, owns: '{"0":3}' })).toBe(true)
    const row = await rowOf(nodes, 'a')
    expect(row).toMatchObject({ ...joining('a'), incarnation: 1, beat: 1, alive: true, owns: '{"0":3}' })
    expect(await nodes.expel(row)).toBe(true)
    expect(await nodes.join({ ...joining('a'), address: 'elsewhere:1' })).toBe(2)
    expect(await rowOf(nodes, 'a')).toMatchObject({
      incarnation: 2,
      beat: 0,
      address: 'elsewhere:1',
      owns: '{}',
    })
  })

  it('beat no more once they are expelled, nor as an earlier incarnation', async () => {
    const nodes = await table()
    await nodes.join(joining('b'))
    await nodes.expel(await rowOf(nodes, 'b'))
    expect(await nodes.beat({ node: 'b', incarnation: 1, owns: '{}' })).toBe(false)
    await nodes.join(joining('b'))
    expect(await nodes.beat({ node: 'b', incarnation: 1, owns: '{}' })).toBe(false)
    expect(await nodes.beat({ node: 'b', incarnation: 2, owns: '{}' })).toBe(true)
  })

  it('are not expelled by who saw an earlier beat', async () => {
    const nodes = await table()
    await nodes.join(joining('c'))
    const seen = await rowOf(nodes, 'c')
    await nodes.beat({ node: 'c', incarnation: 1, owns: '{}' })
    expect(await nodes.expel(seen)).toBe(false)
    expect((await rowOf(nodes, 'c')).alive).toBe(true)
  })

  it('lets one of many through who join under one name, and one who expels', async () => {
    const tables = await Promise.all(Array.from({ length: 6 }, table))
    const joined = await Promise.all(tables.map((nodes) => nodes.join(joining('d'))))
    expect(joined.filter((incarnation) => incarnation !== undefined)).toEqual([1])
    const seen = await rowOf(await table(), 'd')
    const expelled = await Promise.all(tables.map((nodes) => nodes.expel(seen)))
    expect(expelled.filter(Boolean)).toHaveLength(1)
    const again = await Promise.all(tables.map((nodes) => nodes.join(joining('d'))))
    expect(again.filter((incarnation) => incarnation !== undefined)).toEqual([2])
  })
})
