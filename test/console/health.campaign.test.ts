import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('health in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const cell = (page: Page, figure: string, column: string) =>
    page
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: figure, exact: true }) })
      .locator(`[data-name="${column}"]`)
  const plot = (page: Page, name: string) =>
    page.getByRole('img', { name: `${name} in the last five minutes`, exact: true })
  /** Counts the pixels of a plot with a colour, with a tolerance for anti-aliasing. */
  const pixelsOf = (of: Locator, colour: number[]) =>
    of.locator('canvas').evaluate((canvas: HTMLCanvasElement, wanted) => {
      const { data } = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height)
      let count = 0
      for (let at = 0; at < data.length; at += 4)
        if (wanted.every((part, index) => Math.abs((data[at + index] ?? 0) - part) < 12)) count += 1
      return count
    }, colour)
  const setVisibility = (page: Page, state: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, state)

  it('shows the server’s metrics as line charts and as a table', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/health' })
    await page.getByRole('rowheader', { name: 'Free disk space' }).waitFor()
    const records = Array.from({ length: 400 }, (_, number) => ({ number }))
    await writeMany(server, 'measured', records)
    const max = cell(page, 'Records per second', 'Max')
    await max.filter({ hasText: /^\d{2,3}(\.\d)?$/ }).waitFor()
    // 401 records including genesis, in about two seconds.
    const rate = Number(await max.textContent())
    expect(rate).toBeGreaterThan(40)
    expect(rate).toBeLessThan(600)
    await cell(page, 'Records per commit', 'Max')
      .filter({ hasText: /^[1-9]/ })
      .waitFor()
    for (const figure of ['Commit latency: mean', 'Commit latency: p99', 'Request latency (p99)'])
      await cell(page, figure, 'Max')
        .filter({ hasText: /^[\d,.]+ ms$/ })
        .waitFor()
    await cell(page, 'Event loop lag (p99)', 'Now')
      .filter({ hasText: /^[\d,.]+ ms$/ })
      .waitFor()
    for (const shard of [0, 1])
      await page.getByRole('rowheader', { name: `Queue depth: shard ${shard}` }).waitFor()
    await cell(page, 'Requests per second, by status: 2xx', 'Max')
      .filter({ hasText: /^[\d.]+$/ })
      .waitFor()
    // The server has no PostgreSQL sink.
    expect(await page.getByText('PostgreSQL lag').count()).toBe(0)
    const drawn = plot(page, 'Records per second')
    expect(await pixelsOf(drawn, [10, 117, 88])).toBeGreaterThan(20)
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(() => pixelsOf(drawn, [67, 217, 173])).toBeGreaterThan(20)
    // The newest reading is at the right edge.
    const { x, y, width, height } = (await drawn.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 }
    await page.mouse.move(x + width - 24, y + height / 2)
    await page
      .getByRole('figure')
      .first()
      .getByText(/^at \d\d:\d\d:\d\d$/)
      .waitFor()
    await page.mouse.move(0, 0)
    await page.getByRole('figure').first().getByText(/^max/).waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('counts refused ingest lines, and requests by status', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/health' })
    await page.getByRole('rowheader', { name: 'Refused lines per second' }).waitFor()
    const headers = { authorization: `Bearer ${server.rootKey}`, 'content-type': 'application/x-ndjson' }
    const body = `{"n":1}\n${'no json\n'.repeat(40)}`
    const answer = await fetch(`${server.url}/v1/ingest/refused`, { method: 'POST', headers, body })
    expect(answer.status).toBe(200)
    await fetch(`${server.url}/v1/agents`)
    await cell(page, 'Refused lines per second', 'Max')
      .filter({ hasText: /^[1-9]/ })
      .waitFor()
    await page.getByRole('rowheader', { name: 'Requests per second, by status: 4xx' }).waitFor()
  })

  it('reads no metrics while the page is hidden or another screen is shown, and retains earlier ones', async () => {
    const { page, requestedUrls } = await openSignedIn(server.url, {
      at: '#/health',
      options: {},
    })
    const metricsRequests = () => requestedUrls.filter((url) => url.includes('/v1/metrics')).length
    const answered = () => page.waitForResponse((response) => response.url().includes('/v1/metrics'))
    await page.getByRole('rowheader', { name: 'Free disk space' }).waitFor()
    await page.clock.install()
    await setVisibility(page, 'hidden')
    const before = metricsRequests()
    await page.clock.runFor(20_000)
    expect(metricsRequests()).toBe(before)
    const again = answered()
    await setVisibility(page, 'visible')
    await again
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByRole('heading', { name: 'Keys' }).waitFor()
    const left = metricsRequests()
    await page.clock.runFor(20_000)
    expect(metricsRequests()).toBe(left)
    await page.getByRole('link', { name: 'Health', exact: true }).click()
    // Shown immediately from earlier readings.
    await page.getByRole('rowheader', { name: 'Free disk space' }).waitFor()
  })

  it('reports that the metrics cannot be read, and continues once they can', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/health', allowed: '403' })
    await page.getByRole('rowheader', { name: 'Free disk space' }).waitFor()
    const problem = { status: 403, code: 'forbidden', title: 'Forbidden', detail: 'Not through this proxy' }
    await page.route('**/v1/metrics*', (found) =>
      found.fulfill({ status: 403, json: problem, contentType: 'application/problem+json' }),
    )
    const alert = page.getByRole('alert').filter({ hasText: 'Not through this proxy' })
    await alert.waitFor()
    await page.unroute('**/v1/metrics*')
    await alert.waitFor({ state: 'detached' })
  })

  it('explains to a key without access to the whole server that it cannot read the metrics', async () => {
    for (const [scope, agents] of [
      ['records:read', []],
      ['admin:*', ['a*']],
    ] as const) {
      const { key } = await scopedKey(server, [scope], agents)
      const { page, requestedUrls } = await openSignedIn(server.url, {
        at: '#/health',
        key,
      })
      await page.getByText('This key cannot read the metrics').waitFor()
      expect(requestedUrls.filter((url) => url.includes('/v1/metrics'))).toEqual([])
    }
  })
})
