import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const SHARDS = 6
/** Names that cover all shards. */
const agents = Array.from({ length: 24 }, (_none, n) => `agent-${n}`)

interface Member {
  node: string
  owned_shards: number[]
  held_shards: number[]
}

describe.skipIf(noPostgres)('shards that only some of the nodes hold', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', `${SHARDS}`])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())

  const start = (node: string, dataDir?: string) =>
    cluster.start({
      ...(dataDir !== undefined && { dataDir }),
      env: {
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '1',
        SERVICE_CLUSTER_COPIES: '1',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      },
    })
  const membersAt = async (server: TestServer): Promise<Member[]> =>
    (await call(server, 'GET /v1/server')).body.cluster?.members ?? []
  /** Resolves when each node owns `each` shards and holds no others. */
  const areShared = (server: TestServer, each: number) =>
    eventually(async () => {
      const members = await membersAt(server)
      return members.every(
        ({ owned_shards: owned, held_shards: held }) => owned.length === each && held.join() === owned.join(),
      )
    })

  it('are rebuilt from their logs by other nodes when their holder dies, with every answered write', async () => {
    const [first, second, third] = await Promise.all(['first', 'second', 'third'].map((node) => start(node)))
    if (first === undefined || second === undefined || third === undefined) throw new Error('Expected three')
    await eventually(async () => (await call(first, 'GET /readyz')).status === 200)
    await areShared(first, 2)
    const hashes = new Map<string, string>()
    for (const agent of agents) {
      const { status, body } = await call(first, `POST /v1/collections/${agent}/records`, {
        body: { data: { agent } },
      })
      expect(status).toBe(201)
      hashes.set(agent, body.content_hash)
    }
    const held = (await membersAt(first)).find(({ node }) => node === 'third')?.held_shards ?? []
    for (const shard of held) expect(existsSync(join(third.dataDir, `shard-${shard}`))).toBe(true)
    await third.halt('SIGKILL')
    await areShared(first, 3)
    expect((await membersAt(first)).map(({ node }) => node)).toEqual(['first', 'second'])
    for (const server of [first, second])
      for (const [agent, hash] of hashes)
        expect((await call(server, `GET /v1/agents/${agent}/records/${hash}`)).status).toBe(200)
    // The node returns to stale stores, and gets its share.
    const again = await start('third', third.dataDir)
    await areShared(first, 2)
    for (const [agent, hash] of hashes)
      expect((await call(again, `GET /v1/agents/${agent}/records/${hash}`)).status).toBe(200)
    for (const server of [first, second, again]) expect(await server.halt()).toBe(0)
  })
})
