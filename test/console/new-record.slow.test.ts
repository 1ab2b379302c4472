import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { call, type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('a new record in the console', () => {
  let server: TestServer
  let opened: ConsolePage

  beforeAll(async () => {
    server = await startServer()
    await newAgent(server, 'notes')
    await writeMany(server, 'notes', [{ celsius: 21.5, place: 'roof' }])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key?: string): Promise<Page> => {
    opened = await openSignedIn(server.url, { at, key })
    return opened.page
  }
  const dialog = (page: Page) => page.getByRole('dialog', { name: 'New record' })
  const start = async (page: Page) => {
    await page.getByRole('button', { name: 'New record' }).click()
    await dialog(page).getByLabel('Type').waitFor()
  }
  const body = (page: Page) => dialog(page).getByLabel('Body, a JSON object')
  const lastOf = async (agent: string) => {
    const query = { body: { type: 'latest', limit: 1 } }
    return (await call(server, `POST /v1/agents/${agent}/query`, query)).body.records[0]
  }

  it('is written with its type, and opened', async () => {
    const page = await open('#/agents/notes')
    await start(page)
    await dialog(page).getByLabel('Type').fill('remark')
    await body(page).fill('{"text": "grüße", "n": 1.5}')
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Write record' }).click()
    await page.getByRole('heading', { name: 'Record 2' }).waitFor()
    await page.getByRole('dialog').getByText('grüße').first().waitFor()
    expect(await lastOf('notes')).toMatchObject({
      seq: 2,
      type: 'remark',
      payload: { text: 'grüße', n: 1.5 },
    })
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Record 2', exact: true }).waitFor()
  })

  it('is refused by the server’s own rules before it is sent, and nothing typed is lost', async () => {
    const page = await open('#/agents/notes')
    await start(page)
    for (const [text, fault] of [
      ['{"a": 1', 'Expected one JSON value'],
      ['{"a": 1, "a": 2}', 'Expected no duplicate keys'],
      ['{"a": 9007199254740993}', '2^53'],
      ['[1]', 'Expected a JSON object'],
    ] as const) {
      await body(page).fill(text)
      await page.getByRole('button', { name: 'Write record' }).click()
      await dialog(page).getByRole('alert').filter({ hasText: fault }).waitFor()
    }
    await body(page).hover()
    await page.mouse.down()
    await page.mouse.move(1, 1)
    await page.mouse.up()
    expect(await dialog(page).count()).toBe(1)
    await page.mouse.click(1, 1)
    await dialog(page).waitFor({ state: 'detached' })
    await start(page)
    expect(await body(page).inputValue()).toBe('[1]')
    opened.allow('status of 400')
    await body(page).fill('{}')
    await dialog(page).getByLabel('Type').fill('sys/forged')
    await page.getByRole('button', { name: 'Write record' }).click()
    await dialog(page).getByRole('alert').filter({ hasText: 'does not begin with sys/' }).waitFor()
  })

  it('can begin as a copy of the newest record', async () => {
    await writeMany(server, 'copied', [{ celsius: 19, place: 'cellar' }])
    const page = await open('#/agents/copied')
    await start(page)
    await dialog(page).getByRole('button', { name: 'Copy record 1' }).click()
    expect(JSON.parse(await body(page).inputValue())).toEqual({ celsius: 19, place: 'cellar' })
    await page.getByRole('button', { name: 'Write record' }).click()
    await page.getByRole('heading', { name: 'Record 2' }).waitFor()
    expect(await lastOf('copied')).toMatchObject({
      type: 'reading',
      payload: { celsius: 19, place: 'cellar' },
    })
  })

  it('needs records:write, and is not offered on strands of the server', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const page = await open('#/agents/notes', key)
    await expect.poll(() => page.getByRole('button', { name: 'New record' }).isDisabled()).toBe(true)
    await page.getByText('needs records:write').waitFor()
    const log = await open('#/agents/server%3A%3Alog')
    await log.getByRole('button', { name: 'Export' }).waitFor()
    expect(await log.getByRole('button', { name: 'New record' }).count()).toBe(0)
  })
})
