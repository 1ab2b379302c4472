import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { makeMixedStrand } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('times in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    await makeMixedStrand(server, 'mixed')
  })

  afterAll(async () => {
    await server?.stop()
  })

  it('shows times to the millisecond in the time zone of the browser, or all of them in UTC', async () => {
    const { body } = await call(server, 'GET /v1/agents/mixed/status')
    const exact = new Date(Number.parseInt(body.timestamp_hlc.slice(0, 12), 16))
    const ahead = new Date(exact.getTime() + 19_800_000).toISOString()
    const { page } = await openSignedIn(server.url, {
      at: '#/agents/mixed',
      options: { timezoneId: 'Asia/Kolkata' },
    })
    const last = page.locator('.line-facts time')
    expect(await last.textContent()).toBe(`${ahead.slice(0, -1).replace('T', ' ')} +05:30`)
    const first = page.getByRole('row').nth(1).getByRole('time')
    expect(await first.textContent()).toMatch(/^\S+ \d\d:\d\d:\d\d\.\d{3} \+05:30$/)
    await page.getByRole('button', { name: 'Show UTC' }).click()
    const inUtc = `${exact.toISOString().slice(0, -1).replace('T', ' ')} UTC`
    expect(await last.textContent()).toBe(inUtc)
    expect(await first.textContent()).toMatch(/ UTC$/)
    await page.reload()
    await page.getByText('Times are in UTC').waitFor()
    expect(await last.textContent()).toBe(inUtc)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('local time')
    await page.keyboard.press('Enter')
    await page.getByText('Times are in your time zone').waitFor()
    expect(await first.textContent()).toMatch(/ \+05:30$/)
  })

  it('reads a typed time in the time zone that it shows', async () => {
    const { page } = await openSignedIn(server.url, {
      at: '#/agents/mixed',
      options: { timezoneId: 'Asia/Kolkata' },
    })
    const from = () => new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('from')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('From (local)').fill('2020-01-01T12:00:00')
    await page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(from).toBe('2020-01-01T06:30:00Z')
    await page.getByRole('button', { name: 'Show UTC' }).click()
    // The filter stays; the field shows its time in the other zone.
    await expect.poll(() => page.getByLabel('From (UTC)').inputValue()).toBe('2020-01-01T06:30')
    expect(from()).toBe('2020-01-01T06:30:00Z')
    await page.getByLabel('From (UTC)').fill('2020-01-01T12:00:00')
    await page.getByRole('button', { name: 'Apply' }).click()
    await expect.poll(from).toBe('2020-01-01T12:00:00Z')
    await page.goto(`${server.url}/console#/agents/mixed/time`)
    await page.getByLabel('Time (UTC)').fill('2001-09-09T01:46:40')
    await page.getByRole('button', { name: 'Go to this time' }).click()
    await page.getByText('2001-09-09 01:46:40.999 UTC').waitFor()
  })

  it('shows that nothing was recorded yet before the strand began, and nothing below it', async () => {
    const { page } = await openSignedIn(server.url, {
      at: '#/agents/mixed/time',
    })
    await verdict(page)
    await page.getByLabel('Time (local)').fill('2001-09-09T01:46:40')
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
  })
})
