import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { writeMany } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('the live view of an agent', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(async () => {
    await server?.stop()
  })

  /** Opens the live view of an agent with one record. */
  const open = async (agent: string): Promise<Page> => {
    await writeMany(server, agent, [{ number: 0 }])
    const { page } = await openSignedIn(server.url, { at: `#/agents/${agent}/live` })
    await statusIs(page, 'Live')
    return page
  }
  const statusIs = (page: Page, text: string) =>
    page.getByRole('status').getByText(text, { exact: true }).waitFor()
  const write = (agent: string, from: number, count: number) =>
    writeMany(
      server,
      agent,
      Array.from({ length: count }, (_, index) => ({ number: from + index })),
    )
  const seqs = (page: Page) =>
    page
      .getByRole('list', { name: /^Live records/ })
      .getByRole('link')
      .allTextContents()
  const shown = (page: Page, seq: number) =>
    page.getByRole('link', { name: `Record ${seq}`, exact: true }).waitFor()
  const setVisibility = (page: Page, state: 'hidden' | 'visible') =>
    page.evaluate((value) => {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }, state)

  it('shows records as they are written, newest first, at most 500', async () => {
    const page = await open('steady')
    await page.getByText('No records yet').waitFor()
    await write('steady', 1, 3)
    await shown(page, 4)
    expect(await seqs(page)).toEqual(['4', '3', '2'])
    await write('steady', 4, 600)
    await shown(page, 604)
    expect(await seqs(page)).toHaveLength(500)
    await page.getByText('{"number":603}').waitFor()
    await page.getByRole('button', { name: 'Pretty' }).click()
    await page.getByText('"number": 603').waitFor()
  })

  it('resumes after a pause without a gap', async () => {
    const page = await open('paused')
    await write('paused', 1, 2)
    await shown(page, 3)
    await page.getByRole('button', { name: 'Pause' }).click()
    await statusIs(page, 'Paused. Resume continues here without a gap')
    await write('paused', 3, 2)
    await page.getByRole('button', { name: 'Resume' }).click()
    await shown(page, 5)
    expect(await seqs(page)).toEqual(['5', '4', '3', '2'])
  })

  it('closes its connection while the page is hidden', async () => {
    const page = await open('hidden')
    await write('hidden', 1, 1)
    await shown(page, 2)
    const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/hidden/stream'))
    await setVisibility(page, 'hidden')
    await closed
    await write('hidden', 2, 1)
    await setVisibility(page, 'visible')
    await shown(page, 3)
    expect(await seqs(page)).toEqual(['3', '2'])
  })

  it('starts at a record, and filters by a field', async () => {
    await write('earlier', 1, 5)
    const page = await open('earlier')
    await page.getByLabel('From record').fill('3')
    await page.getByRole('button', { name: 'Start there' }).click()
    await shown(page, 6)
    expect(await seqs(page)).toEqual(['6', '5', '4', '3'])
    await page.getByLabel('With field').fill('rare')
    await page.getByLabel('With field').press('Tab')
    await statusIs(page, 'Live')
    await writeMany(server, 'earlier', [{ number: 7 }, { rare: true }])
    await shown(page, 8)
    expect(await seqs(page)).toEqual(['8', '6', '5', '4', '3'])
  })

  it('says that it shows the last 500 of more records, and shows none of another filter as new', async () => {
    await write('many', 1, 600)
    await write('many', 601, 600)
    const page = await open('many')
    await page.getByLabel('From record').fill('1')
    await page.getByRole('button', { name: 'Start there' }).click()
    await page.getByRole('link', { name: 'Record 1,201', exact: true }).waitFor()
    await page.getByText('the last 500 of 1,201 records, in order of time').waitFor()
    const list = page.getByRole('list', { name: /^Live records/ })
    await list.evaluate((element) => element.scrollTo({ top: 400 }))
    await page.waitForFunction(() => document.querySelector('.live-rows')?.scrollTop === 400)
    await page.getByLabel('With field').fill('rare')
    await page.getByLabel('With field').press('Enter')
    await page.getByText('No records yet').waitFor()
    await writeMany(server, 'many', [{ rare: true }])
    await page.getByRole('link', { name: 'Record 1,202', exact: true }).waitFor()
    expect(await page.getByRole('button', { name: /^Show .* new$/ }).count()).toBe(0)
    expect(await page.getByText('No records yet').count()).toBe(0)
  })

  it('keeps the visible rows in place while scrolled, and counts new ones', async () => {
    const page = await open('read')
    await write('read', 1, 200)
    await shown(page, 201)
    const list = page.getByRole('list', { name: /^Live records/ })
    await list.evaluate((element) => element.scrollTo({ top: 400 }))
    await page.waitForFunction(() => document.querySelector('.live-rows')?.scrollTop === 400)
    await write('read', 201, 7)
    await page.getByRole('button', { name: 'Show 7 new' }).click()
    await shown(page, 208)
    expect(await list.evaluate((element) => element.scrollTop)).toBe(0)
  })

  it('keeps the visible rows in place if records arrive just before scrolling', async () => {
    const page = await open('between')
    await write('between', 1, 200)
    await shown(page, 201)
    const list = page.getByRole('list', { name: /^Live records/ })
    await page.evaluate(() => {
      const held: FrameRequestCallback[] = []
      Object.assign(window, {
        held,
        requestAnimationFrame: (callback: FrameRequestCallback) => held.push(callback),
      })
    })
    await write('between', 201, 7)
    await expect
      .poll(() => page.evaluate(() => (window as unknown as { held: unknown[] }).held.length))
      .toBe(1)
    await list.evaluate(async (element) => {
      const scrolled = new Promise((resolve) => element.addEventListener('scroll', resolve, { once: true }))
      element.scrollTo({ top: 400 })
      await scrolled
    })
    await page.evaluate(() => (window as unknown as { held: FrameRequestCallback[] }).held.shift()?.(0))
    await page.getByRole('button', { name: 'Show 7 new' }).click()
    await shown(page, 208)
  })
})
