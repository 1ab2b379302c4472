import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/client/verify-export.js'
import { type ConsolePage, openSignedIn, verdict } from '../support/console/console-page.js'
import { makeMixedStrand, writeMany } from '../support/console/strands.js'
import { scopedKey } from '../support/http/answers.js'
import { newOrganism } from '../support/auth/organisms.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

const html = '<img src=x onerror="document.title=1">'

describe.skipIf(noBrowser)('agents and records in the console', () => {
  let server: TestServer
  let opened: ConsolePage

  beforeAll(async () => {
    server = await startServer()
    await makeMixedStrand(server, 'mixed')
    for (let number = 0; number < 60; number += 1) {
      const name = `fleet-${String(number).padStart(2, '0')}`
      await call(server, 'POST /v1/agents', { body: { name, zone: 'governed' } })
    }
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key?: string): Promise<Page> => {
    opened = await openSignedIn(server.url, { at, key })
    return opened.page
  }
  const row = (page: Page, seq: number) =>
    page.getByRole('row').filter({ has: page.getByRole('link', { name: `Record ${seq}`, exact: true }) })

  it('lists agents in pages and by any part of their name', async () => {
    const page = await open('#/agents')
    await page.getByText('62 agents').waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(50)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('rowheader', { name: 'mixed' }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(12)
    await page.getByRole('button', { name: 'Previous' }).click()
    await page.getByRole('rowheader', { name: 'fleet-00' }).waitFor()
    await page.getByLabel('Name contains').fill('IXE')
    await page.getByText('1 agent', { exact: true }).waitFor()
    const cells = await page.getByRole('row', { name: 'mixed' }).getByRole('cell').allTextContents()
    expect(cells.slice(0, 2)).toEqual(['free', '8'])
    await page.getByLabel('Name contains').fill('absent')
    await page.getByText('No agents match “absent”').waitFor()
  })

  it('lists the agents of a key that is limited to some', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['fleet-1*', 'mixed'])
    const page = await open('#/agents', key)
    await page.getByText('11 agents').waitFor()
    await page.getByLabel('Name contains').fill('19')
    await page.getByText('1 agent', { exact: true }).waitFor()
    await page.getByRole('rowheader', { name: 'fleet-19' }).waitFor()
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
    await page.getByLabel('Value', { exact: true }).fill('7')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('deleted and erased records are omitted').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 2)
    expect(await page.getByRole('rowheader').allTextContents()).toEqual(['8', '7'])
    await page.getByLabel('Type of the value').selectOption('number')
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
    await page.getByLabel('Type of the value').selectOption('text')
    await page.getByLabel('Value', { exact: true }).fill('1')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page
      .getByText('is a number in records that were read, but the filter compares it with text')
      .waitFor()
    await page.getByText('No matching records', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Compare as number' }).click()
    await row(page, 1).waitFor()
  })

  it('says that the range of time ended a search, and searches all times', async () => {
    const page = await open('#/agents/mixed?types=reading&from=2020-01-01T00:00:00Z&to=2020-02-01T00:00:00Z')
    await page.getByText('The range of time ended the search: it read no records').waitFor()
    await page.getByRole('button', { name: 'Search all times' }).click()
    await row(page, 8).waitFor()
    expect(new URL(page.url()).hash).toBe('#/agents/mixed?types=reading')
    await page.getByLabel('Types').fill('nothing')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('All records were read').waitFor()
  })

  it('has the filter, its range of time and the columns in the address', async () => {
    const page = await open('#/agents/mixed')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByRole('button', { name: 'Add condition' }).click()
    await page.getByLabel('Field').fill('place')
    await page.getByLabel('Value', { exact: true }).fill('cellar')
    await page.getByLabel('From').fill('2020-01-01T00:00:00')
    await page.getByRole('button', { name: 'Apply' }).click()
    await row(page, 1).waitFor({ state: 'detached' })
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'celsius' }).click()
    await page.getByRole('columnheader', { name: 'celsius' }).waitFor()
    const shown = async (one: Page) => {
      await one.getByRole('columnheader', { name: 'celsius' }).waitFor()
      expect(await one.getByRole('rowheader').allTextContents()).toEqual(['8', '7', '6'])
    }
    await page.reload()
    await shown(page)
    expect(await page.getByLabel('Value', { exact: true }).inputValue()).toBe('cellar')
    expect(await page.getByLabel('From').inputValue()).toBe('2020-01-01T00:00')
    // The drawer of a record and the other tabs lead back to the same list.
    await page.getByRole('link', { name: 'Record 7' }).click()
    await page.getByRole('heading', { name: 'Record 7' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await shown(page)
    await page.getByRole('tab', { name: 'Proof' }).click()
    await page.getByRole('tab', { name: 'Records' }).click()
    await shown(page)
    const address = page.url()
    // A person with another time zone opens the address.
    const options = { timezoneId: 'Asia/Tokyo' }
    const { hash } = new URL(address)
    const other = await openSignedIn(server.url, { at: hash, options })
    await shown(other.page)
    expect(new URL(other.page.url()).hash).toBe(hash)
    await page.getByRole('button', { name: 'Clear' }).click()
    await row(page, 0).waitFor()
    await page.goBack()
    await shown(page)
    expect(page.url()).toBe(address)
  })

  it('does not list records for an invalid filter in the address', async () => {
    const page = await open('#/agents/mixed?types=Reading')
    await page.getByText('The filter is not valid: Expected types of').waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(0)
  })

  it('offers nested fields as columns, and closes the choice by Escape and by a press outside', async () => {
    await writeMany(server, 'nested', [
      { door: { name: 'north', lock: { state: 'shut' } }, n: 1 },
      { door: { name: 'south' }, list: [1] },
    ])
    const page = await open('#/agents/nested')
    const summary = page.locator('summary').filter({ hasText: 'Columns' })
    const choices = page.locator('.picker-inside > button')
    await summary.click()
    await choices.first().waitFor()
    expect(await choices.allTextContents()).toEqual([
      'door',
      'list',
      'n',
      // Those of the genesis record.
      'agent',
      'created_at_ms',
      'public_key',
      'zone',
      'door.name',
      'door.lock',
      'door.lock.state',
    ])
    // Each button stays where it is while it is pressed.
    for (const name of ['door.name', 'door.lock.state']) {
      const button = page.getByRole('button', { name, exact: true })
      const before = await button.boundingBox()
      await button.click()
      await page.getByRole('columnheader', { name, exact: true }).waitFor()
      expect(await button.boundingBox()).toEqual(before)
    }
    expect(await row(page, 1).locator('.picked').allTextContents()).toEqual(['north', 'shut'])
    await page.getByLabel('Path of a column').fill('door.none')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const added = page.getByRole('button', { name: 'door.none' })
    await added.click()
    await page.getByRole('columnheader', { name: 'door.none' }).waitFor({ state: 'detached' })
    expect(await added.getAttribute('aria-pressed')).toBe('false')
    await page.keyboard.press('Escape')
    await expect.poll(() => choices.first().isVisible()).toBe(false)
    await expect.poll(() => summary.evaluate((element) => element === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await choices.first().waitFor()
    await page.getByRole('heading', { name: 'nested' }).click()
    await expect.poll(() => choices.first().isVisible()).toBe(false)
  })

  it('goes to a record by its seq, its hash or the first digits of it, in another agent too', async () => {
    const [hash = ''] = await writeMany(server, 'other', [{ n: 1 }])
    const page = await open('#/agents/mixed')
    const go = async (text: string): Promise<void> => {
      await page.getByLabel('Go to record').fill(text)
      await page.getByRole('button', { name: 'Go to record' }).click()
    }
    const { body } = await call(server, 'GET /v1/agents/mixed/head')
    for (const text of [
      '8',
      body.chain_head,
      `sha256:${body.chain_head}`,
      ` ${body.chain_head.slice(0, 8).toUpperCase()}… `,
    ]) {
      await go(text)
      await page.getByRole('heading', { name: 'Record 8' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await go('roof')
    await page.getByText('Expected a number from 0 to 8, or the first 8 or more digits of a hash').waitFor()
    opened.allow('status of 404')
    await go('0'.repeat(12))
    await page.getByText('No record has a hash that begins with 000000000000').waitFor()
    await go(hash.slice(0, 10))
    await page.getByRole('heading', { name: 'other', level: 1 }).waitFor()
    await page.getByRole('heading', { name: 'Record 1' }).waitFor()
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
      expect(await verdict(page)).toContain(
        `Consistent; the signer is not known to you: record ${seq} of mixed is in the checkpoint of 8 records and the genesis`,
      )
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
    await page.locator('.tree code').getByText('2499', { exact: true }).waitFor()
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
    opened.allow('status of 400')
    await page.goto(`${server.url}/console#/agents/${encodeURIComponent(html)}`)
    await page.getByRole('heading', { name: html }).waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.title()).toBe(`${html} · Strandfast`)
  })
})
