import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { startTransactionPooler } from '../support/postgres/transaction-pooler.js'

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

describe.skipIf(noPostgres)('nodes over a database or a network that is slow or hostile', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())

  const isAlive = async (node: string) => {
    const found = await cluster.postgres.query(
      `SELECT 1 FROM strandfast_nodes WHERE node = '${node}' AND alive`,
    )
    return found.length > 0
  }

  it('does not start by a pooler that lends connections for a transaction: exit 78, and why', async () => {
    const pooler = await startTransactionPooler(Number(new URL(cluster.postgres.url).port))
    const url = cluster.postgres.url.replace(/:\d+\//, `:${pooler.port}/`)
    const env = { SERVICE_CLUSTER_URL: url, SERVICE_DATA_DIR: cluster.place('data'), SERVICE_PORT: '0' }
    const ran = await cluster.run(['serve'], env)
    await pooler.stop()
    expect(ran).toMatchObject({ status: 78, stderr: expect.stringContaining('connect without a pooler') })
  })

  it('ends in order at SIGTERM while it starts and its database answers nothing', async () => {
    const blocker = await cluster.postgres.connect()
    await blocker.query('BEGIN; LOCK TABLE strandfast_segments')
    const child = spawn(process.execPath, [program, 'serve'], {
      env: {
        ...inherited,
        ...cluster.env,
        SERVICE_CLUSTER_NODE: 'starting',
        SERVICE_DATA_DIR: cluster.place('data'),
        SERVICE_PORT: '0',
        SERVICE_SHUTDOWN_TIMEOUT_SECS: '4',
      },
      stdio: 'ignore',
    })
    await eventually(() => isAlive('starting'))
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    await blocker.end()
    expect(code).toBe(0)
  })
})
