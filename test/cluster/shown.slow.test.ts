import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { eventually } from '../support/eventually.js'
import { checkedCall } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import type { TestServer } from '../support/server/server.js'

/** More than any disk has. */
const fullDisk = { SERVICE_MIN_FREE_BYTES: `${2 ** 50}` }

describe.skipIf(noBrowser || noPostgres)('what a node shows of its cluster', () => {
  let cluster: ClusterOfOne
  /** The only way of the first node to the database. */
  let database: TcpProxy
  let first: TestServer

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    await cluster.run(['cluster', 'init', '--shards', '1'])
    const url = new URL(cluster.postgres.url)
    database = await startTcpProxy(Number(url.port))
    url.port = String(database.port)
    first = await cluster.start({ env: { SERVICE_CLUSTER_NODE: 'first', SERVICE_CLUSTER_URL: url.href } })
  })

  afterAll(async () => {
    await database?.stop()
    await cluster?.remove()
  })

  const startSecond = (env: Record<string, string> = {}) =>
    cluster.start({ env: { SERVICE_CLUSTER_NODE: 'second', ...env } })
  const clusterOf = async (server: TestServer) => (await checkedCall(server, 'GET /v1/server')).body.cluster
  const problemsAt = async ({ url }: TestServer) => {
    const text = await (await fetch(`${url}/metrics`)).text()
    return Number(/^strandfast_cluster_problems (\d+)$/m.exec(text)?.[1])
  }

  it('names a node that does not run, and no longer when it runs again', async () => {
    const second = await startSecond()
    await eventually(async () => (await clusterOf(first)).members.length === 2)
    const { members, stopped } = await clusterOf(first)
    expect(stopped).toEqual([])
    const { address } = members[1]
    await second.halt('SIGKILL')
    await eventually(async () => (await clusterOf(first)).stopped.length === 1)
    expect(await clusterOf(first)).toMatchObject({
      members: [{ node: 'first' }],
      stopped: [{ node: 'second', address }],
    })
    const { page } = await openSignedIn(first.url)
    const nodes = page.getByRole('list', { name: 'Nodes of the cluster' }).getByRole('listitem')
    await nodes.filter({ hasText: `second at ${address} does not run` }).waitFor()
    const again = await startSecond()
    await eventually(async () => (await clusterOf(first)).stopped.length === 0)
    await again.halt()
  })

  it('names a full disk as a problem of that node, not as one of the server, and counts it', async () => {
    const second = await startSecond(fullDisk)
    await eventually(async () => (await problemsAt(second)) > 0 && (await problemsAt(first)) > 0)
    const { page } = await openSignedIn(second.url)
    await page.getByText('The data disk of the node second is nearly full').waitFor()
    expect(await page.getByText('The server is read-only').count()).toBe(0)
    await page.close()
    await second.halt()
    await eventually(async () => (await problemsAt(first)) === 0)
  })

  it('says how old that is while the node is cut off from the database and no agent can be read', async () => {
    await eventually(async () => (await clusterOf(first)).problems.length === 0)
    const { page } = await openSignedIn(first.url, { allowed: '503' })
    const notice = page.getByText('The database confirms no heartbeats of the node first')
    database.hold()
    await eventually(async () => (await problemsAt(first)) === 1)
    const { problems } = await clusterOf(first)
    expect(problems).toEqual([
      expect.stringMatching(
        /^The database confirms no heartbeats of the node first: what it shows of the nodes is \d+ s old$/,
      ),
    ])
    await notice.waitFor()
    database.heal()
    await eventually(async () => (await problemsAt(first)) === 0)
    await notice.waitFor({ state: 'hidden' })
  })
})
