import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { makeMixedStrand } from '../support/console/strands.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('times in the console', () => {
  let server: TestServer
  let browser: Browser

  beforeAll(async () => {
    server = await startServer()
    browser = await sharedBrowser()
    await makeMixedStrand(server, 'mixed')
  })

  afterAll(async () => {
    await server?.stop()
  })

  it('shows that nothing was recorded yet before the strand began, and nothing below it', async () => {
    const { page, context, browserErrors } = await openSignedIn(browser, server.url, {
      at: '#/agents/mixed/time',
    })
    await verdict(page)
    await page.getByLabel('Time, in your time zone').fill('2001-09-09T01:46:40')
    await page.getByRole('button', { name: 'Go to this time' }).click()
    await page.getByText('Nothing was recorded yet').waitFor()
    const below = page.getByRole('tabpanel').locator('.verdict, .moment, table')
    expect(await below.count()).toBe(0)
    expect(await page.getByLabel('Record', { exact: true }).inputValue()).toBe('')
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByText('Nothing was recorded yet').waitFor()
    expect(await below.count()).toBe(0)
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('button', { name: 'Next record' }).click()
    expect(await verdict(page)).toContain('record 0 was the last record of mixed')
    expect(browserErrors).toEqual([])
    await context.close()
  })
})
