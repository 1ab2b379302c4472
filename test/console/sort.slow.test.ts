import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sortedRows, type SortKey } from '../../src/console/parts/sort.js'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { call, type TestServer, startServer } from '../support/server/server.js'

describe('the rows of a list', () => {
  const sorted = (rows: SortKey[], isDescending: boolean) =>
    sortedRows(rows, {
      keys: { Key: (key) => key },
      sort: { column: 'Key', isDescending },
      set: () => undefined,
    })

  it('are sorted as numbers or as text, in both directions, with missing keys last', () => {
    expect(sorted([3, null, 20, 1], false)).toEqual([1, 3, 20, null])
    expect(sorted([3, null, 20, 1], true)).toEqual([20, 3, 1, null])
    expect(sorted(['b', 'a10', 'B', 'a9', 'é'], false)).toEqual(['a9', 'a10', 'b', 'B', 'é'])
  })

  it('keep their order among equal keys, and without a chosen column', () => {
    const rows = [{ at: 1 }, { at: 2 }, { at: 3 }]
    const keys = { Same: () => 0 }
    const set = (): void => undefined
    expect(sortedRows(rows, { keys, sort: { column: 'Same', isDescending: true }, set })).toEqual(rows)
    expect(sortedRows(rows, { keys, sort: undefined, set })).toBe(rows)
    expect(sortedRows(rows, undefined)).toBe(rows)
  })
})

describe.skipIf(noBrowser)('sorting in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    const lines = Array.from({ length: 70 }, (_none, at) => ({ agent: `fleet.${100 + at}`, data: { at } }))
    const raw = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    await call(server, 'POST /v1/ingest', { raw, headers: { 'content-type': 'application/x-ndjson' } })
    // The agent with the most records is on the second page by name.
    await writeMany(
      server,
      'fleet.165',
      Array.from({ length: 120 }, (_none, at) => ({ at })),
    )
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string): Promise<Page> => {
    return (await openSignedIn(server.url, { at })).page
  }
  const first = (page: Page) => page.locator('main').getByRole('rowheader').first()
  const heading = (page: Page, name: string) => page.getByRole('columnheader', { name })

  it('sorts all agents, not only those of the page', async () => {
    const page = await open('#/agents')
    await expect.poll(() => page.getByRole('rowheader').count()).toBe(50)
    await page.getByTitle('Sort by Records').click()
    await expect.poll(() => page.getByRole('rowheader').count()).toBeGreaterThan(70)
    expect(await heading(page, 'Records').getAttribute('aria-sort')).toBe('ascending')
    await page.getByTitle('Sort by Records').click()
    await first(page).getByText('fleet.165').waitFor()
    expect(await heading(page, 'Records').getAttribute('aria-sort')).toBe('descending')
    expect(await page.getByRole('button', { name: 'Next' }).count()).toBe(0)
    expect(await page.getByTitle('Sort by Key').count()).toBe(0)
    await page.getByLabel('Name contains').fill('fleet.10')
    await page.getByText('10 agents').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('sorts by a field on a phone, where rows are cards without headings', async () => {
    const page = await open('#/agents')
    await page.setViewportSize({ width: 360, height: 800 })
    await page.getByLabel('Sort by').selectOption('Records ↓')
    await first(page).getByText('fleet.165').waitFor()
    await page.getByLabel('Sort by').selectOption('Not sorted')
    await expect.poll(() => page.getByRole('rowheader').count()).toBe(50)
  })

  it('shows a strand from its beginning, page by page', async () => {
    const page = await open('#/agents/fleet.165')
    await first(page).getByText('121', { exact: true }).waitFor()
    await page.getByTitle('Sort by Seq').click()
    await first(page).getByText('0', { exact: true }).waitFor()
    expect(await heading(page, 'Seq').getAttribute('aria-sort')).toBe('ascending')
    await page.getByRole('button', { name: 'Next' }).click()
    await first(page).getByText('50', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await first(page).getByText('100', { exact: true }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(22)
    expect(await page.getByRole('button', { name: 'Next' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Types').fill('reading')
    await page.getByRole('button', { name: 'Apply' }).click()
    await first(page).getByText('2', { exact: true }).waitFor()
    await page.setViewportSize({ width: 360, height: 800 })
    await page.getByLabel('Order').selectOption('Newest first')
    await first(page).getByText('121', { exact: true }).waitFor()
  })
})
