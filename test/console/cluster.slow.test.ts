import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn } from '../support/console/console-page.js'
import { eventually } from '../support/eventually.js'
import { ask } from '../support/http/answers.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { freePort } from '../support/server/free-port.js'
import type { TestServer } from '../support/server/server.js'

describe.skipIf(noBrowser || noPostgres)('the console of a cluster', () => {
  let cluster: ClusterOfOne
  let browser: Browser
  let [first, second]: (TestServer | undefined)[] = []

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    await cluster.run(['cluster', 'init', '--shards', '1'])
    browser = await sharedBrowser()
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
        // Without links: with them the console of a node that stands by shows all that the other one has.
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:1',
      },
    })
  }
  const told = async (server: TestServer) => (await ask(server, 'GET /v1/server')).body.cluster

  it('shows on Home who serves and how far behind the others are, which GET /v1/server tells administrators', async () => {
    first = await start('first')
    second = await start('second')
    const serving = first
    await eventually(async () => typeof (await told(serving)).members[1]?.lag_secs === 'number')
    const { node, members, differences } = await told(first)
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
    const { page, context, complaints } = await openSignedIn(browser, first.url)
    const nodes = page.getByRole('list', { name: 'Nodes of the cluster' }).getByRole('listitem')
    await nodes.filter({ hasText: /first at http\S+ serves shard 0 since/ }).waitFor()
    await nodes.filter({ hasText: /second at http\S+ stands by, copies of 1, \d\.\d s behind/ }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  it('says on a node that stands by that it does, and leads to the one that serves', async () => {
    const [serving, standing] = [first, second]
    if (serving === undefined || standing === undefined) throw new Error('Expected two nodes')
    await eventually(
      async () => (await ask(standing, 'GET /v1/server')).body.serving?.address === serving.url,
    )
    expect(await ask(standing, 'GET /v1/server')).toMatchObject({ status: 503, body: { stands_by: true } })
    const { page, context } = await openConsole(browser, standing.url, { allowed: '503' })
    await page.getByRole('heading', { name: 'This node stands by' }).waitFor()
    expect(await page.getByLabel('Root key or API key').count()).toBe(0)
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('link', { name: 'Open the console of first' }).click()
    await page.waitForURL(`${serving.url}/console*`)
    await page.getByLabel('Root key or API key').waitFor()
    await context.close()
  })

  it('goes on by itself when the node takes its turn', async () => {
    const [serving, standing] = [first, second]
    if (serving === undefined || standing === undefined) throw new Error('Expected two nodes')
    const { page, context } = await openConsole(browser, standing.url, { allowed: '503' })
    await page.getByRole('heading', { name: 'This node stands by' }).waitFor()
    await serving.halt()
    await page.getByLabel('Root key or API key').waitFor()
    await context.close()
    // The table of nodes says so with its next beat.
    await expect
      .poll(async () => (await told(standing)).members)
      .toMatchObject([{ node: 'second', serves_since_ms: expect.any(Number) }])
    await standing.halt()
  })
})
