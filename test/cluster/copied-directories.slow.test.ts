import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { newAgent } from '../support/http/answers.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const shards = [0, 1]
const built = 'built the store of a shard from the log of the cluster'
const secret = 'a body that is erased later'

/** The paths of the files in a directory, without sockets. */
function filesOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) =>
    lstatSync(join(directory, name)).isFile(),
  )
}

/** Copies the files of a directory that another process may write to. */
function copyFiles(from: string, to: string): void {
  for (const name of filesOf(from)) {
    mkdirSync(join(to, name, '..'), { recursive: true, mode: 0o700 })
    writeFileSync(join(to, name), readFileSync(join(from, name)), { mode: 0o600 })
  }
}

/** Pages of two moments, as a slow copy reads them: the first quarter earlier than the rest. */
function torn(earlier: Buffer, later: Buffer): Buffer {
  const at = Math.floor(earlier.length / 4 / 4_096) * 4_096
  return Buffer.concat([earlier.subarray(0, at), later.subarray(at)])
}

describe.skipIf(noPostgres)('the data directory of a node', () => {
  let cluster: ClusterOfOne
  /** The directory of a node that was stopped in order, as it was before and after the erasure. */
  let dataDir: string
  let earlier: string
  let tornCopy: string
  let key: string
  const written = new Map<string, string>()

  const start = async (node: string, directory: string): Promise<TestServer> => {
    const server = await cluster.start({
      dataDir: directory,
      env: {
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '2',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
        SERVICE_LOG_LEVEL: 'info',
      },
    })
    await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    return server
  }
  const write = async (server: TestServer, agent: string, text: string): Promise<string> => {
    const { status, body } = await call(server, `POST /v1/collections/${agent}/records`, {
      body: { data: { text } },
    })
    expect(status).toBe(201)
    written.set(body.content_hash, agent)
    return body.record_id
  }
  const writeMany = async (server: TestServer, round: number) => {
    for (let n = 0; n < 50; n++)
      await Promise.all(
        [0, 1, 2, 3].map((of) => write(server, `agent-${of}-${n}`, 'x'.repeat(100 * round + n))),
      )
  }
  /** Checks that a node that owns all shards shows what it must. */
  const isUpToDate = async (server: TestServer) => {
    for (const [hash, agent] of written) {
      const { status } = await call(server, `GET /v1/agents/${agent}/records/${hash}`)
      if (status !== 200) expect([agent, hash, status]).toEqual([agent, hash, 200])
    }
    expect((await call(server, 'GET /v1/agents', { key })).status).toBe(401)
    const { text } = await call(server, 'POST /v1/agents/erased/query', {
      body: { type: 'latest', limit: 9 },
    })
    expect(text).not.toContain(secret)
  }
  const hasErased = (directory: string) =>
    shards.some((shard) => readFileSync(join(directory, `shard-${shard}`, 'data.mdb')).includes(secret))

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', `${shards.length}`])).toMatchObject({
      status: 0,
    })
    dataDir = cluster.newPath('data')
    earlier = cluster.newPath('earlier')
    tornCopy = cluster.newPath('torn')
    const first = await start('first', dataDir)
    await writeMany(first, 1)
    await newAgent(first, 'erased')
    const erasedId = await write(first, 'erased', secret)
    const made = await call(first, 'POST /v1/admin/api-keys', {
      body: { name: 'one', scopes: ['records:read'] },
    })
    key = made.body.key
    expect((await call(first, 'GET /v1/agents', { key })).status).toBe(200)
    await first.halt()
    copyFiles(dataDir, earlier)
    expect(hasErased(earlier)).toBe(true)

    const again = await start('first', dataDir)
    expect((await call(again, `DELETE /v1/admin/api-keys/${made.body.key_id}`)).status).toBe(200)
    expect((await call(again, `POST /v1/agents/erased/records/${erasedId}/erase`)).body.state).toBe('erased')
    for (const [hash, agent] of written) if (agent === 'erased') written.delete(hash)
    for (let round = 2; round < 8; round++) await writeMany(again, round)
    await again.halt()
    copyFiles(dataDir, tornCopy)
    for (const shard of shards) {
      const name = join(`shard-${shard}`, 'data.mdb')
      const [before, after] = [earlier, dataDir].map((directory) => readFileSync(join(directory, name)))
      if (before === undefined || after === undefined) throw new Error('Expected two stores')
      writeFileSync(join(tornCopy, name), torn(before, after))
    }
  })

  afterAll(() => cluster?.remove())

  it('is filled from the logs again if it was copied file by file', async () => {
    const second = await start('second', tornCopy)
    await isUpToDate(second)
    expect(hasErased(tornCopy)).toBe(false)
    expect(second.stderr().split(built).length - 1).toBe(shards.length)
    expect(await second.halt()).toBe(0)
  })

  it('is brought up to the logs if it was set back to an earlier state of its file system', async () => {
    // The same files with earlier content.
    for (const name of filesOf(earlier)) writeFileSync(join(dataDir, name), readFileSync(join(earlier, name)))
    const server = await start('first', dataDir)
    await isUpToDate(server)
    await eventually(() => !hasErased(dataDir))
    expect(await server.halt()).toBe(0)
  })

  it('may be that of another node of the cluster', async () => {
    const [one, other] = [cluster.newPath('one'), cluster.newPath('other')]
    renameSync(dataDir, other)
    renameSync(tornCopy, one)
    const servers = [await start('first', one), await start('second', other)]
    for (const server of servers) await isUpToDate(server)
    for (const server of servers) expect(await server.halt()).toBe(0)
  })
})
