import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GraphEdge } from '../../src/client/index.js'
import { type Branch, firstOf, treeOf } from '../../src/console/agents/graph/tree.js'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { signUp } from '../support/auth/users.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

describe('the tree of a graph', () => {
  const edge = (link: string): GraphEdge => {
    const [src = '', dst = ''] = link.split('>')
    return { src, dst, edge_type: 'feeds', weight: 1 }
  }
  const shown = (branches: readonly Branch[]): unknown[] =>
    branches.map(({ edge: { dst }, isElsewhere, branches: further }) =>
      isElsewhere ? `(${dst})` : further.length === 0 ? dst : [dst, ...shown(further)],
    )

  it('shows the branches of each agent once, on the shortest path, and ends at cycles', () => {
    const edges = ['a>b', 'a>c', 'b>d', 'b>c', 'c>a', 'c>e', 'd>d', 'd>e'].map(edge)
    expect(shown(treeOf('a', edges))).toEqual([
      ['b', ['d', '(d)', '(e)'], '(c)'],
      ['c', '(a)', 'e'],
    ])
    expect(treeOf('z', edges)).toEqual([])
  })

  it('is limited to a number of branches in reading order', () => {
    const tree = treeOf('a', ['a>b', 'a>c', 'b>d', 'b>e', 'c>f'].map(edge))
    expect([2, 3, 4, 9].map((count) => shown(firstOf(tree, count)))).toEqual([
      [['b', 'd']],
      [['b', 'd', 'e']],
      [['b', 'd', 'e'], 'c'],
      [
        ['b', 'd', 'e'],
        ['c', 'f'],
      ],
    ])
  })
})

describe.skipIf(noBrowser)('the graph in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
    for (const name of ['boiler', 'sensors', 'office', 'roof', 'alone', 'hub']) await newAgent(server, name)
    await add('boiler', 'sensors', 'feeds')
    await add('sensors', 'office', 'reports', 0.5)
    await add('office', 'boiler', 'feeds')
    await add('office', 'roof', 'feeds')
  })

  afterAll(async () => {
    await server?.stop()
  })

  // An edge has these four parts.
  // oxlint-disable-next-line max-params
  const add = async (src: string, dst: string, type: string, weight = 1): Promise<string> => {
    const body = { src, dst, edge_type: type, weight }
    const answer = await call(server, 'POST /v1/graph/edges', { body })
    expect(answer.status).toBe(201)
    return answer.body.timestamp_hlc
  }
  const open = async (agent: string, key: string = server.rootKey): Promise<Page> => {
    return (await openSignedIn(server.url, { at: `#/agents/${agent}/graph`, key })).page
  }
  const rows = (page: Page, name: string) =>
    page
      .getByRole('table', { name, exact: true })
      .getByRole('row')
      .filter({ has: page.getByRole('cell') })
  const cells = async (page: Page, name: string) => {
    await rows(page, name).first().waitFor()
    return (await rows(page, name).allTextContents()).sort()
  }
  const tree = (page: Page, agent: string) => page.getByRole('navigation', { name: `Tree from ${agent}` })
  const links = (page: Page, agent: string) => tree(page, agent).getByRole('link').allTextContents()

  it('shows the outgoing and incoming edges of an agent, and the agents reachable in one to three steps', async () => {
    const page = await open('boiler')
    expect(await cells(page, 'Edges from boiler')).toEqual(['sensorsfeeds1'])
    expect(await cells(page, 'Edges to boiler')).toEqual(['officefeeds1'])
    await page.getByText('2 other agents by 2 edges').waitFor()
    expect(await links(page, 'boiler')).toEqual(['sensors', 'office'])
    await tree(page, 'boiler').getByText('weight 0.5').waitFor()
    await page.getByLabel('Steps').selectOption('3')
    await page.getByText('3 other agents by 4 edges').waitFor()
    expect(await links(page, 'boiler')).toEqual(['sensors', 'office', 'boiler', 'roof'])
    expect(await tree(page, 'boiler').getByText('(already in this tree)').count()).toBe(1)
    await page.getByLabel('Steps').selectOption('1')
    await page.getByText('1 other agent by 1 edge').waitFor()
    await tree(page, 'boiler').getByRole('link', { name: 'sensors' }).click()
    await page.getByRole('heading', { name: 'sensors', level: 1 }).waitFor()
    expect(await cells(page, 'Edges from sensors')).toEqual(['officereports0.5'])
  })

  it('filters edges by type, and explains the format of types', async () => {
    await add('hub', 'roof', 'feeds')
    await add('hub', 'office', 'reports')
    const page = await open('hub')
    expect(await cells(page, 'Edges from hub')).toEqual(['officereports1', 'rooffeeds1'])
    await page.getByLabel('Edge type').fill('not so')
    await page.getByText('Expected 1 to 64 characters of').waitFor()
    await page.getByLabel('Edge type').fill('feeds')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('1 other agent by 1 edge').waitFor()
    expect(await cells(page, 'Edges from hub')).toEqual(['rooffeeds1'])
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.getByText('3 other agents by').waitFor()
  })

  it('shows edges at a point in time: removed edges before their removal, and none before the first', async () => {
    for (const name of ['old', 'was-there']) await newAgent(server, name)
    const ms = Number.parseInt((await add('old', 'was-there', 'feeds')).slice(0, 12), 16)
    // The field has whole seconds, so the removal has to be in a later second.
    await expect
      .poll(() => Math.floor(Date.now() / 1_000) > Math.floor(ms / 1_000), { timeout: 3_000 })
      .toBe(true)
    await call(server, 'DELETE /v1/graph/edges?src=old&edge_type=feeds&dst=was-there')
    const page = await open('old')
    await page.getByText('No outgoing edges').waitFor()
    await page.getByText('POST /v1/graph/edges').first().waitFor()
    const typed = await page.evaluate((at) => {
      const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
      return local.toISOString().slice(0, 19)
    }, ms)
    await page.getByLabel('As of (local)').fill(typed)
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    expect(await cells(page, 'Edges from old')).toEqual(['was-therefeeds1'])
    expect(await links(page, 'old')).toEqual(['was-there'])
    await page.getByLabel('As of (local)').fill('2001-09-09T01:46:40')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('Try another type or another time').first().waitFor()
  })

  it('shows edges in pages, and a long tree in parts', async () => {
    await newAgent(server, 'wide')
    const names = Array.from({ length: 310 }, (_none, at) => `leaf-${String(at).padStart(3, '0')}`)
    for (const name of names) await newAgent(server, name)
    for (const name of names) await add('wide', name, 'feeds')
    const page = await open('wide')
    expect(await cells(page, 'Edges from wide')).toHaveLength(50)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('rowheader', { name: 'leaf-050' }).waitFor()
    await page.getByRole('button', { name: 'Previous' }).click()
    await page.getByRole('rowheader', { name: 'leaf-000' }).waitFor()
    expect(await links(page, 'wide')).toHaveLength(300)
    await page.getByRole('button', { name: 'Show more' }).click()
    expect(await links(page, 'wide')).toHaveLength(310)
  })

  it('omits agents that the key cannot access, with a note', async () => {
    const limited = await scopedKey(server, ['records:read'], ['boiler', 'sensors'])
    const page = await open('boiler', limited.key)
    await page.getByText('Agents that this key cannot access are omitted').waitFor()
    expect(await cells(page, 'Edges from boiler')).toEqual(['sensorsfeeds1'])
    await page.getByText('No incoming edges').waitFor()
  })

  it('explains to a user that only keys can read edges', async () => {
    const policies = [{ actions: ['read'], conditions: [] }]
    await call(server, 'PUT /v1/agents/boiler/policies', { body: { policies } })
    const page = await open('boiler', await signUp(server, 'ann@example.org'))
    await page.getByText('Users cannot read edges').waitFor()
  })

  it('is accessible by axe and fits', async () => {
    const page = await open('boiler')
    await page.getByLabel('Steps').selectOption('3')
    await page.getByText('3 other agents by 4 edges').waitFor()
    await cells(page, 'Edges to boiler')
    expect(await faultsEverywhere(page)).toEqual([])
    await page.goto(`${server.url}/console#/agents/alone/graph`)
    await page.getByText('No incoming edges').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
