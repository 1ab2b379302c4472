import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn } from '../support/console/console-page.js'
import { eventually } from '../support/eventually.js'
import { checkedCall } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { freePort } from '../support/server/free-port.js'
import type { TestServer } from '../support/server/server.js'

describe.skipIf(noBrowser || noPostgres)('the console of a cluster', () => {
  let cluster: ClusterOfOne
  let [first, second]: (TestServer | undefined)[] = []

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    await cluster.run(['cluster', 'init', '--shards', '1'])
  })

  afterAll(async () => {
    await cluster?.remove()
  })

  const start = async (node: string) => {
    const port = `${await freePort()}`
    return cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: node,
        // Long enough that a busy machine expels no node.
        SERVICE_CLUSTER_LEASE_SECS: '3',
        SERVICE_PORT: port,
        // No links between nodes: with links a standby would forward the requests of the console.
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:1',
      },
    })
  }
  const clusterOf = async (server: TestServer) => (await checkedCall(server, 'GET /v1/server')).body.cluster

  it('shows on Home the active node and the lag of the others, as GET /v1/server reports them', async () => {
    first = await start('first')
    second = await start('second')
    const serving = first
    await eventually(async () => {
      const standby = (await clusterOf(serving)).members[1]
      return typeof standby?.lag_secs === 'number' && standby.held_shards.length === 1
    })
    const { node, members, differences } = await clusterOf(first)
    expect([node, differences]).toEqual(['first', []])
    expect(members).toMatchObject([
      {
        node: 'first',
        address: first.url,
        serves_since_ms: expect.any(Number),
        owned_shards: [0],
        lag_secs: null,
      },
      {
        node: 'second',
        address: second.url,
        serves_since_ms: null,
        owned_shards: [],
        lag_secs: expect.any(Number),
      },
    ])
    const { page } = await openSignedIn(first.url)
    const nodes = page.getByRole('list', { name: 'Nodes of the cluster' }).getByRole('listitem')
    await nodes.filter({ hasText: /first at http\S+ serves shard 0 since/ }).waitFor()
    await nodes.filter({ hasText: /second at http\S+ standby, copies of 1 shard, \d\.\d s behind/ }).waitFor()
    expect(await axeFindings(page)).toEqual([])
  })

  it('explains on a standby node that it is one, and links to the active node', async () => {
    const [serving, standby] = [first, second]
    if (serving === undefined || standby === undefined) throw new Error('Expected two nodes')
    await eventually(
      async () => (await checkedCall(standby, 'GET /v1/server')).body.serving?.address === serving.url,
    )
    expect(await checkedCall(standby, 'GET /v1/server')).toMatchObject({
      status: 503,
      body: { stands_by: true },
    })
    const { page } = await openConsole(standby.url, { allowed: '503' })
    await page.getByRole('heading', { name: 'This node is a standby' }).waitFor()
    expect(await page.getByLabel('Root key or API key').count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('link', { name: 'Open the console of first' }).click()
    await page.waitForURL(`${serving.url}/console*`)
    await page.getByLabel('Root key or API key').waitFor()
  })

  it('opens the sign-in when the standby becomes active', async () => {
    const [serving, standby] = [first, second]
    if (serving === undefined || standby === undefined) throw new Error('Expected two nodes')
    const { page } = await openConsole(standby.url, { allowed: '503' })
    await page.getByRole('heading', { name: 'This node is a standby' }).waitFor()
    await serving.halt()
    await page.getByLabel('Root key or API key').waitFor()
    await page.close()
    // The table of nodes changes with the next heartbeat.
    await expect
      .poll(async () => (await clusterOf(standby)).members)
      .toMatchObject([{ node: 'second', serves_since_ms: expect.any(Number) }])
    await standby.halt()
  })
})
