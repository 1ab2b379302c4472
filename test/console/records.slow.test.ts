import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/client/verify-export.js'
import { type ConsolePage, openSignedIn, verdict } from '../support/console/console-page.js'
import { makeMixedStrand, writeMany } from '../support/console/strands.js'
import { scopedKey } from '../support/http/answers.js'
import { newOrganism } from '../support/auth/organisms.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

const html = '<img src=x onerror="document.title=1">'

describe.skipIf(noBrowser)('agents and records in the console', () => {
  let server: TestServer
  let browser: Browser
  let opened: ConsolePage | undefined

  beforeAll(async () => {
    server = await startServer()
    browser = await sharedBrowser()
    await makeMixedStrand(server, 'mixed')
    for (let number = 0; number < 60; number += 1) {
      const name = `fleet-${String(number).padStart(2, '0')}`
      await call(server, 'POST /v1/agents', { body: { name, zone: 'governed' } })
    }
  })

  afterAll(async () => {
    await server?.stop()
  })

  afterEach(async () => {
    const browserErrors = opened?.browserErrors ?? []
    await opened?.context.close()
    opened = undefined
    expect(browserErrors).toEqual([])
  })

  const open = async (at: string, key?: string): Promise<Page> => {
    opened = await openSignedIn(browser, server.url, key === undefined ? { at } : { at, key })
    return opened.page
  }
  const row = (page: Page, seq: number) =>
    page.getByRole('row').filter({ has: page.getByRole('link', { name: `Record ${seq}`, exact: true }) })

  it('lists agents in pages and by prefix', async () => {
    const page = await open('#/agents')
    await page.getByText('62 agents').waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(50)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('rowheader', { name: 'mixed' }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(12)
    await page.getByRole('button', { name: 'Back' }).click()
    await page.getByRole('rowheader', { name: 'fleet-00' }).waitFor()
    await page.getByLabel('Name begins with').fill('mix')
    await page.getByText('1 agent', { exact: true }).waitFor()
    const cells = await page.getByRole('row', { name: 'mixed' }).getByRole('cell').allTextContents()
    expect(cells.slice(0, 2)).toEqual(['free', '8'])
    await page.getByLabel('Name begins with').fill('absent')
    await page.getByText('No agent’s name begins with “absent”').waitFor()
  })

  it('shows the agents of one organism', async () => {
    await newOrganism(server, 'north', { agents: ['door'], auth: false })
    const page = await open('#/agents')
    await page.getByLabel('Organization').selectOption('north')
    await page.getByRole('rowheader', { name: 'north::door' }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(1)
    await page.getByLabel('Organization').selectOption('All agents')
    await page.getByRole('rowheader', { name: 'fleet-00' }).waitFor()
  })

  it('creates an agent in the chosen zone, and opens it', async () => {
    const page = await open('#/agents')
    await page.getByRole('button', { name: 'New agent' }).click()
    await page.getByLabel('Name', { exact: true }).fill('.wrong')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByText('Expected 1 to 128 characters of').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('created.here')
    await page.getByRole('radio', { name: /^protected/ }).check()
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'created.here' }).waitFor()
    const { body } = await call(server, 'GET /v1/agents/created.here/status')
    expect(body.zone).toBe('protected')
  })

  it('names the missing scope for creating an agent', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const page = await open('#/agents', key)
    await expect.poll(() => page.getByRole('button', { name: 'New agent' }).isDisabled()).toBe(true)
    await page.getByText('needs agents:admin').waitFor()
  })

  it('lists all records, newest first, with deleted, erased and sealed ones marked', async () => {
    const page = await open('#/agents/mixed')
    await row(page, 0).waitFor()
    const seqs = await page.getByRole('rowheader').allTextContents()
    expect(seqs).toEqual(['8', '7', '6', '5', '4', '3', '2', '1', '0'])
    expect(await row(page, 2).locator('.state').textContent()).toBe('deleted')
    expect(await row(page, 3).locator('.state').textContent()).toBe('erased')
    expect(await row(page, 3).locator('.body').textContent()).toBe('Body permanently erased')
    expect(await row(page, 6).locator('.state').textContent()).toBe('sealed by 8')
    expect(await row(page, 8).locator('.state').textContent()).toBe('')
    expect(await row(page, 1).locator('.body').textContent()).toBe('{"celsius":1,"place":"roof"}')
  })

  it('filters by type, field and value, and explains what filters omit', async () => {
    const page = await open('#/agents/mixed')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Types').fill('reading')
    await page.getByRole('button', { name: 'Add condition' }).click()
    await page.getByLabel('Field').fill('celsius')
    await page.getByLabel('Comparison').selectOption('is at least')
    await page.getByLabel('Type of the value').selectOption('number')
    await page.getByLabel('Value', { exact: true }).fill('7')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('deleted and erased records are omitted').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2)
    expect(await page.getByRole('rowheader').allTextContents()).toEqual(['8', '7'])
    await page.getByLabel('Value', { exact: true }).fill('seven')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Expected a number for celsius, got “seven”').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await row(page, 0).waitFor()
  })

  it('shows fields as columns, and remembers them in the tab', async () => {
    const page = await open('#/agents/mixed')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'celsius' }).click()
    await page.getByRole('columnheader', { name: 'celsius' }).waitFor()
    expect(await row(page, 7).locator('[data-name=celsius]').textContent()).toBe('7')
    await page.reload()
    await page.getByRole('columnheader', { name: 'celsius' }).waitFor()
  })

  it('shows any path as a column, and shows the warnings of a filter', async () => {
    const path = '/labels/app.kubernetes.io~1name'
    await writeMany(server, 'labelled', [{ 'a.b': 1, labels: { 'app.kubernetes.io/name': 'web' } }])
    const page = await open('#/agents/labelled')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'a.b' }).click()
    const add = page.getByRole('button', { name: 'Add', exact: true })
    await page.getByLabel('Path of a column').fill('/a~b')
    await add.click()
    await page.getByRole('alert').getByText('or a JSON Pointer').waitFor()
    await page.getByLabel('Path of a column').fill(path)
    await add.click()
    await page.getByRole('columnheader', { name: path }).waitFor()
    expect(await row(page, 1).locator('.picked').allTextContents()).toEqual(['1', 'web'])
    await page.getByText('Columns (2)').click()
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByRole('button', { name: 'Add condition' }).click()
    await page.getByLabel('Field').fill('/a.b')
    await page.getByLabel('Value', { exact: true }).fill('1')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('/where/0 compares /a.b with text, but some records have a number there').waitFor()
  })

  it('saves an export that verifies, plain and compressed', async () => {
    const page = await open('#/agents/mixed')
    for (const isPacked of [false, true]) {
      await page.getByRole('button', { name: 'Export' }).click()
      await page.getByRole('checkbox').setChecked(isPacked)
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Save file' }).click()
      const file = await download
      expect(file.suggestedFilename()).toBe(`mixed-0-8.ndjson${isPacked ? '.gz' : ''}`)
      const bytes = readFileSync(await file.path())
      const text = (isPacked ? gunzipSync(bytes) : bytes).toString()
      expect(await verifyExport(text)).toMatchObject({ ok: true, records: 9, erased: 1 })
      await page.getByRole('button', { name: 'Close' }).click()
    }
  })

  it('proves active, deleted, erased and sealed records, step by step up to the checkpoint', async () => {
    const page = await open('#/agents/mixed')
    for (const seq of [0, 1, 2, 3, 6, 8]) {
      await page.goto(`${server.url}/console#/agents/mixed/${seq}`)
      await page.getByRole('heading', { name: `Record ${seq}` }).waitFor()
      await page.getByRole('button', { name: 'Prove' }).click()
      expect(await verdict(page)).toContain(`Verified: record ${seq} of mixed is one of the 9 records`)
      const siblings = page.getByRole('listitem').filter({ hasText: /^.?Holds: Step \d of \d: the sibling/ })
      expect(await siblings.count()).toBe(seq === 8 ? 1 : 4)
      expect(await page.locator('.steps .fails').count()).toBe(0)
    }
  })

  it('shows the header and the body of a record, and reports a seq beyond the last record', async () => {
    const page = await open('#/agents/mixed/1')
    await page.getByText('strand-record/v1').waitFor()
    await page.getByText('"roof"', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Raw' }).click()
    await page.locator('pre').getByText('{"celsius":1,"place":"roof"}').waitFor()
    await page.getByRole('link', { name: 'Newer' }).click()
    await page.getByRole('heading', { name: 'Record 2' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(new URL(page.url()).hash).toBe('#/agents/mixed')
    await page.goto(`${server.url}/console#/agents/mixed/99`)
    await page.getByText('Record 99 does not exist: the last record is 8').waitFor()
  })

  it('shows 2,000 nodes of a body, and more on demand', async () => {
    await writeMany(server, 'wide', [{ list: Array.from({ length: 2_500 }, (_, index) => index) }])
    const page = await open('#/agents/wide/1')
    await page.getByRole('button', { name: 'Show 2,000 more' }).click()
    await page.getByRole('button', { name: 'Show 2,000 more' }).waitFor({ state: 'detached' })
    expect(await page.locator('.tree code').count()).toBe(2_500)
    await page.locator('.tree').getByText('2499', { exact: true }).waitFor()
  })

  it('shows the content of records as text, never as HTML', async () => {
    await writeMany(server, 'hostile', [{ [html]: html, nested: [{ [html]: html }] }])
    const page = await open('#/agents/hostile')
    await row(page, 1).waitFor()
    expect(await row(page, 1).locator('.body').textContent()).toContain('<img src=x')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: html }).click()
    await page.getByRole('columnheader', { name: html }).waitFor()
    await page.goto(`${server.url}/console#/agents/hostile/1`)
    await page.locator('.tree').getByText(html).first().waitFor()
    // This name is invalid for an agent, so the server answers 400.
    opened?.allow('status of 400')
    await page.goto(`${server.url}/console#/agents/${encodeURIComponent(html)}`)
    await page.getByRole('heading', { name: html }).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.title()).toBe(`${html} · Strandfast`)
  })
})
