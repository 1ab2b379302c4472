import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { writeMany } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

/** More tabs than a browser opens HTTP/1.1 connections to one server. */
const TABS = 8

/*
 * In this browser every tab counts as visible, like windows side by side: so streams do not close because their
 * tabs are hidden.
 */
describe.skipIf(noBrowser)('eight tabs with live records', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(async () => {
    await server?.stop()
  })

  /** Opens tabs one after another; each has to load while the earlier ones are open. */
  async function openTabs(at: string, loaded: (page: Page) => Promise<void>): Promise<Page[]> {
    const { page, context } = await openSignedIn(server.url, { at, options: {} })
    await loaded(page)
    const others: Page[] = []
    while (others.length < TABS - 1) others.push(await openTab(context, at, loaded))
    return [page, ...others]
  }
  async function openTab(
    context: BrowserContext,
    at: string,
    loaded: (page: Page) => Promise<void>,
  ): Promise<Page> {
    const page = await context.newPage()
    await page.goto(`${server.url}/console${at}`)
    await loaded(page)
    return page
  }
  const statusOf = (page: Page) => page.locator('.tail-line').getByRole('status').textContent()
  const isLive = (page: Page) => page.getByRole('status').getByText('Live', { exact: true }).waitFor()
  const shown = (page: Page, seq: number) =>
    page.getByRole('link', { name: `Record ${seq}`, exact: true }).waitFor()
  const seqs = (page: Page) =>
    page
      .getByRole('list', { name: /^Live records/ })
      .getByRole('link')
      .allTextContents()
  const openStreams = async (): Promise<number> => {
    const { text } = await call(server, 'GET /metrics')
    return Number(/^strandfast_streams_open(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1])
  }

  it('all load, the last three are live, and an earlier one continues without a gap', async () => {
    await writeMany(server, 'tabs', [{ number: 0 }])
    const tabs = await openTabs('#/agents/tabs/live', isLive)
    await expect.poll(openStreams).toBe(3)
    const paused = 'Paused, because other tabs are live. It continues when you return to this tab'
    expect(await Promise.all(tabs.map(statusOf))).toEqual([
      ...Array.from({ length: TABS - 3 }, () => paused),
      ...Array.from({ length: 3 }, () => 'Live'),
    ])
    await writeMany(server, 'tabs', [{ number: 1 }, { number: 2 }])
    for (const page of tabs.slice(-3)) await shown(page, 3)
    const [first, second] = tabs
    expect(await Promise.all([first, second].map((page) => page && seqs(page)))).toEqual([[], []])
    await first?.evaluate(() => window.dispatchEvent(new Event('focus')))
    if (first) await shown(first, 3)
    expect(first && (await seqs(first))).toEqual(['3', '2'])
    await second?.getByRole('button', { name: 'Resume' }).click()
    if (second) await shown(second, 3)
    await expect.poll(openStreams).toBe(3)
  })

  it('all load and send requests, with live records on the first page and on Home', async () => {
    const tabs = await openTabs('#/', (page) => page.getByRole('heading', { level: 1 }).first().waitFor())
    for (const page of tabs) {
      await page.goto(`${server.url}/console#/agents`)
      await page.getByRole('rowheader', { name: 'default' }).waitFor()
    }
  })

  it('a tab that opens behind another one has no stream until it is shown', async () => {
    await writeMany(server, 'behind', [{ number: 0 }])
    const { page, context } = await openSignedIn(server.url, { options: {} })
    await context.addInitScript(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
    })
    const behind = await openTab(context, '#/agents/behind/live', (tab) =>
      tab.getByText('Paused while the page is hidden').waitFor(),
    )
    await page.goto(`${server.url}/console#/agents`)
    await expect.poll(openStreams).toBe(0)
    await behind.evaluate(() => {
      Object.defineProperty(document, 'visibilityState', { value: 'visible', configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    })
    await isLive(behind)
    await expect.poll(openStreams).toBe(1)
  })
})
