import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { withoutRedundant } from '../../src/console/parts/accessible-agents.js'
import { axeFindings, type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

describe('patterns of agents', () => {
  it('are removed if another pattern covers the same agents', () => {
    expect(withoutRedundant(['a-*', 'a-1', 'a-b*', 'b', 'a*', 'ab'])).toEqual(['b', 'a*'])
    expect(withoutRedundant(['a', 'a*'])).toEqual(['a*'])
    expect(withoutRedundant(['a', 'b'])).toEqual(['a', 'b'])
    expect(withoutRedundant(['*', 'a*', 'b'])).toEqual(['*'])
  })
})

describe.skipIf(noBrowser)('keys in the console', () => {
  let server: TestServer
  let opened: ConsolePage

  beforeAll(async () => {
    server = await startServer()
    for (const name of ['sensor-1', 'sensor-2', 'weather'])
      await call(server, 'POST /v1/agents', { body: { name, zone: 'free' } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (key?: string): Promise<Page> => {
    const at = '#/keys'
    opened = await openSignedIn(server.url, { at, key })
    await opened.page.getByRole('heading', { name: 'Keys' }).waitFor()
    return opened.page
  }
  const row = (page: Page, name: string) =>
    page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: new RegExp(name) }) })
  const whoIs = (key: string) => call(server, 'GET /v1/whoami', { key })

  it('explains what to do if there are no keys', async () => {
    const page = await open()
    await page.getByText('No keys yet').waitFor()
  })

  it('creates a key, counts the agents that it can access, and shows it once', async () => {
    const page = await open()
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Enter a name for the key').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('Gateway')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('Select at least one permission').waitFor()
    await page.getByLabel('Send records through the ingest routes').check()
    await page.getByText('4 agents today').waitFor()
    await page.getByLabel('Only these').check()
    await page.getByLabel('Names, or prefixes with *').fill('sensor-*, weather, sensor-1, absent')
    await page.getByText('3 agents today').waitFor()
    await page.getByLabel('Names, or prefixes with *').fill('sensor-*, wea*ther')
    await page.getByText('got “wea*ther”').first().waitFor()
    await page.getByLabel('Names, or prefixes with *').fill('sensor-*')
    await page.getByLabel('Expires').selectOption('In 7 days')
    await page.getByRole('button', { name: 'Create key' }).click()
    const key = await page.getByLabel('Key', { exact: true }).inputValue()
    await page.keyboard.press('Escape')
    await page.getByText('The key is not shown again').waitFor()
    await page.getByRole('button', { name: 'I’ve saved it' }).click()
    const { body } = await whoIs(key)
    expect(body).toMatchObject({ name: 'Gateway', scopes: ['ingest'], agents: ['sensor-*'] })
    expect(Math.round((body.expires_at_ms - body.created_at_ms) / 86_400_000)).toBe(7)
    await row(page, 'Gateway').waitFor()
    const cells = await row(page, 'Gateway').getByRole('cell').allTextContents()
    expect(cells.slice(0, 3)).toEqual(['ingest', 'sensor-*', 'Root key'])
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
    expect(stored).not.toContain(key)
  })

  it('deletes a key after its digits are typed, and lists what ends', async () => {
    const { key, key_id: keyId } = await scopedKey(server, ['records:read'])
    const page = await open()
    await page.getByRole('button', { name: 'Delete test' }).click()
    await page.getByText('streams opened with it end').waitFor()
    await page.getByText('This key has created no other keys').waitFor()
    const button = page.getByRole('button', { name: 'Delete key' })
    await page.getByLabel('To confirm, type').fill(keyId.slice(-7))
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill(keyId.slice(-8))
    await button.click()
    await row(page, 'test').waitFor({ state: 'detached' })
    expect((await whoIs(key)).status).toBe(401)
  })

  it('signs out after the deletion of the signed-in key, with a warning before', async () => {
    const { key, key_id: keyId } = await scopedKey(server, ['admin:*'])
    const page = await open(key)
    await page.getByText('this key', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Delete test' }).click()
    await page.getByText('will be signed out').waitFor()
    await page.getByLabel('To confirm, type').fill(keyId.slice(-8))
    opened.allow('401 (Unauthorized)')
    await page.getByRole('button', { name: 'Delete key' }).click()
    await page.getByText('The server no longer accepts this key').waitFor()
  })

  it('names the missing scope', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const page = await open(key)
    await page.getByText('This key cannot list keys').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'New key' }).isDisabled()).toBe(true)
    expect(await page.getByRole('link', { name: 'Keys', exact: true }).count()).toBe(0)
  })

  it('explains that a key needs approval, and links to its proposal', async () => {
    const admins = [await scopedKey(server, ['admin:*']), await scopedKey(server, ['admin:*'])]
    const page = await open(admins[0]?.key)
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Decider')
    await page.getByLabel('Approve and reject pending changes').check()
    await page.getByText('needs approval itself').waitFor()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByText('This key does not work yet').waitFor()
    const key = await page.getByLabel('Key', { exact: true }).inputValue()
    expect((await whoIs(key)).status).toBe(401)
    await page.getByRole('link', { name: 'Open its proposal' }).click()
    await page.getByRole('heading', { name: 'Create the API key “Decider”' }).waitFor()
    await page.getByText('You proposed this, so another key has to approve it').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Approve' }).isDisabled()).toBe(true)
  })

  it('is accessible by axe and fits, with its dialogs', async () => {
    await call(server, 'POST /v1/admin/api-keys', { body: { name: 'Shown', scopes: ['ingest'] } })
    const page = await open()
    await row(page, 'Shown').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Only these').check()
    await page.getByLabel('Everything').check()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Delete Shown' }).click()
    await page.getByText('This key has created no other keys').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('finds keys on all pages by a part of their name, case-insensitively, or by their digits', async () => {
    const names = Array.from({ length: 120 }, (_none, at) => `Fleet ${String(at).padStart(3, '0')}`)
    for (const name of names)
      await call(server, 'POST /v1/admin/api-keys', { body: { name, scopes: ['ingest'] } })
    const { body } = await call(server, 'GET /v1/admin/api-keys?limit=1000')
    const last: { key_id: string } = body.api_keys.find(({ name }: { name: string }) => name === 'Fleet 119')
    const page = await open()
    await page.getByRole('button', { name: 'Next' }).waitFor()
    const shown = page.getByRole('rowheader')
    // The list is sorted by name, so this key is not on the first page.
    expect(await row(page, last.key_id.slice(-8)).count()).toBe(0)
    const listed = await shown.locator('.key-name').allTextContents()
    expect(listed).toEqual(listed.toSorted(new Intl.Collator('en', { numeric: true }).compare))
    await page.getByTitle('Sort by Name').click()
    await row(page, last.key_id.slice(-8)).waitFor()
    const field = page.getByLabel('Name or ID contains')
    await field.fill(last.key_id.slice(-8))
    await row(page, last.key_id.slice(-8)).waitFor()
    expect(await shown.count()).toBe(1)
    await field.fill('fLEET 11')
    await page.getByText('10 keys', { exact: true }).waitFor()
    expect(await shown.count()).toBe(10)
    await field.fill('fleet')
    await page.getByText('120 keys', { exact: true }).waitFor()
    expect(await shown.count()).toBe(100)
    await field.fill('no such key')
    await page.getByText('No keys match “no such key”').waitFor()
    expect(await axeFindings(page)).toEqual([])
    await field.fill('')
    await page.getByRole('button', { name: 'Next' }).waitFor()
  })
})
