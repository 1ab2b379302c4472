import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsInAllThemes } from '../support/console/everywhere.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const startNs = BigInt(Date.UTC(2026, 0, 2, 3, 4, 5)) * 1_000_000n
const html = '<img src=x onerror="document.title=1">'

/** A span that starts and ends at milliseconds of the trace. */
const span = (spanId: string, [from, to]: [from: number, to: number], more: object = {}) => ({
  traceId,
  spanId: spanId.padEnd(16, '0'),
  startTimeUnixNano: String(startNs + BigInt(from) * 1_000_000n),
  endTimeUnixNano: String(startNs + BigInt(to) * 1_000_000n),
  kind: 2,
  resource: { attributes: [{ key: 'service.name', value: { stringValue: 'checkout' } }] },
  ...more,
})

const root = span('a', [0, 250], { name: 'POST /orders' })
const charge = span('b', [20, 220], { name: 'charge', kind: 3, parentSpanId: root.spanId })
const refused = span('c', [30, 31], {
  name: html,
  parentSpanId: charge.spanId,
  status: { code: 2, message: 'card declined' },
})
const log = {
  traceId,
  spanId: refused.spanId,
  timeUnixNano: String(startNs + 30_500_000n),
  severityNumber: 17,
  severityText: 'ERROR',
  body: { stringValue: 'Card 1234 was declined' },
}

describe.skipIf(noBrowser)('traces in the console', () => {
  let server: TestServer
  let opened: ConsolePage

  const write = async (agent: string, type: string, data: object) => {
    const { status } = await call(server, `POST /v1/collections/${agent}/records`, { body: { type, data } })
    expect(status).toBe(201)
  }

  beforeAll(async () => {
    server = await startServer()
    await write('shop', 'otel/span', charge)
    await write('shop', 'otel/span', root)
    await write('payments', 'otel/span', refused)
    await write('payments', 'otel/log', log)
    await write('payments', 'otel/log', { ...log, traceId: 'f'.repeat(32) })
    await write('payments', 'reading', { traceId })
    await write('orphans', 'otel/span', {
      ...span('d', [0, 1], { name: `late ${'and long '.repeat(40)}` }),
      traceId: 'd'.repeat(32),
      parentSpanId: '1234567890abcdef',
    })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key?: string): Promise<Page> => {
    opened = await openSignedIn(server.url, { at, key })
    return opened.page
  }
  const names = (page: Page) => page.getByRole('rowheader').allTextContents()
  const listed = (page: Page, name: string) =>
    page.getByRole('dialog').getByRole('list', { name }).getByRole('link').allTextContents()

  it('are found by their ID, with the spans and logs of all agents as a tree', async () => {
    const page = await open('#/home')
    // No record's hash begins with the ID.
    opened.allow('status of 404')
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'hash' }).fill(traceId.toUpperCase())
    await page.getByRole('option', { name: `Trace ${traceId} trace` }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Trace' }).waitFor()
    await page.getByRole('link', { name: 'Card 1234 was declined' }).waitFor()
    expect(await names(page)).toEqual([
      'Level 1: POST /orders',
      'Level 2: charge',
      `Level 3: ${html}`,
      'Level 4: Card 1234 was declined',
    ])
    const cells = await page.getByRole('row', { name: 'charge' }).getByRole('cell').allTextContents()
    expect(cells).toEqual(['shop', '', '20 ms', '200 ms', ''])
    await page.getByText('3 spans, 1 log record').waitFor()
    await page.getByText('error: card declined').waitFor()
    expect(await faultsInAllThemes(page)).toEqual([])
    await page.getByRole('link', { name: html }).click()
    await page.getByRole('heading', { name: 'Record 1' }).waitFor()
    expect(page.url()).toContain('#/agents/payments/1')
  })

  it('show the duration, the times, the parents and the children of an open span', async () => {
    const page = await open('#/agents/shop/1')
    const drawer = page.getByRole('dialog')
    await drawer.getByRole('heading', { name: 'Span' }).waitFor()
    await drawer.getByText('200 ms').first().waitFor()
    await drawer.getByText(/:05\.020 [+-]/).waitFor()
    await drawer.getByRole('list', { name: 'Child spans' }).waitFor()
    expect(await listed(page, 'Parent spans')).toEqual(['POST /orders'])
    expect(await listed(page, 'Child spans')).toEqual([html])
    expect(await faultsInAllThemes(page)).toEqual([])
    await drawer.getByRole('link', { name: html }).click()
    await drawer.getByRole('heading', { name: 'Record 1' }).waitFor()
    await drawer.getByRole('list', { name: 'Logs' }).waitFor()
    expect(await listed(page, 'Parent spans')).toEqual(['POST /orders', 'charge'])
    await drawer.getByRole('link', { name: 'Card 1234 was declined' }).click()
    await drawer.getByRole('heading', { name: 'Log record' }).waitFor()
    await drawer.getByText('+ 500,000 ns').waitFor()
    await drawer.getByRole('list', { name: 'Parent spans' }).waitFor()
    expect(await listed(page, 'Parent spans')).toEqual(['POST /orders', 'charge', html])
    await drawer.getByRole('link', { name: traceId }).click()
    await page.getByRole('row', { name: 'charge' }).waitFor()
    expect(await page.evaluate(() => document.title)).not.toBe('1')
  })

  it('say which span above was not found, and search other times', async () => {
    const page = await open('#/agents/orphans/1')
    await page.getByText('The span 1234567890abcdef above was not found').waitFor()
    await page.getByRole('link', { name: 'Search the whole trace' }).click()
    await page.getByRole('row', { name: 'late' }).waitFor()
    const hidden = await page.locator('.scroll').evaluate((box) => box.scrollWidth - box.clientWidth)
    expect(hidden).toBe(0)
    await page.getByLabel('Written to').fill('2026-01-01T00:00:00')
    await page.getByLabel('Written from').fill('')
    await page.getByRole('button', { name: 'Search', exact: true }).click()
    await page.getByText('No spans or logs of this trace').waitFor()
    await page.getByRole('link', { name: 'Search all times' }).click()
    await page.getByRole('row', { name: 'late' }).waitFor()
    await page.goBack()
    await page.getByText('No spans or logs of this trace').waitFor()
    expect(await page.getByLabel('Written to').inputValue()).toBe('2026-01-01T00:00')
    await page.goForward()
    await page.getByRole('row', { name: 'late' }).waitFor()
  })

  it('show a limited key the records of its agents only', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['shop'])
    const page = await open(`#/traces/${traceId}`, key)
    await page.getByRole('row', { name: 'charge' }).waitFor()
    expect(await names(page)).toEqual(['Level 1: POST /orders', 'Level 2: charge'])
  })
})
