import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('the navigation of the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    for (const name of ['weather.london', 'weather.paris', 'traffic'])
      await writeMany(server, name, [{ n: 1 }])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const field = (page: Page) =>
    page.getByRole('combobox', { name: 'Agent, hash, ID, e-mail, screen or action' })
  const options = (page: Page) =>
    page.getByRole('listbox', { name: 'Results' }).getByRole('option').locator('span').allTextContents()
  const chosen = (page: Page) => page.getByRole('option', { selected: true }).locator('span').textContent()

  it('opens an agent by Ctrl+K and a few letters, with the keyboard alone', async () => {
    const { page } = await openSignedIn(server.url)
    await page.keyboard.press('Control+k')
    await field(page).waitFor()
    await page.keyboard.type('weather')
    await page.getByRole('option', { name: 'weather.paris agent' }).waitFor()
    expect(await options(page)).toEqual(['weather.london', 'weather.paris'])
    expect(await chosen(page)).toBe('weather.london')
    await page.keyboard.press('ArrowUp')
    expect(await chosen(page)).toBe('weather.paris')
    const named = await field(page).getAttribute('aria-activedescendant')
    expect(await page.locator(`[id="${named}"]`).textContent()).toContain('weather.paris')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'weather.paris' }).waitFor()
    expect(await field(page).count()).toBe(0)
  })

  it('opens with / outside text fields, and returns the focus', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/agents' })
    const prefix = page.getByLabel('Name contains')
    await prefix.pressSequentially('we/')
    expect(await prefix.inputValue()).toBe('we/')
    await page.getByText('No agents match “we/”').waitFor()
    expect(await field(page).count()).toBe(0)
    const keys = page.getByRole('link', { name: 'Keys', exact: true })
    await keys.focus()
    await page.keyboard.press('/')
    await field(page).waitFor()
    expect(await field(page).inputValue()).toBe('')
    await page.keyboard.press('Escape')
    await field(page).waitFor({ state: 'detached' })
    await expect.poll(() => keys.evaluate((element) => element === document.activeElement)).toBe(true)
  })

  it('opens each screen, and runs each action', async () => {
    const { page, allow } = await openSignedIn(server.url)
    // The screens of users and audit on a server without sign-in.
    allow('status of 404')
    const run = async (typed: string, name: string) => {
      await page.getByRole('button', { name: 'Go to…' }).click()
      await field(page).fill(typed)
      await page.getByRole('listbox', { name: 'Results' }).getByText(name, { exact: true }).click()
    }
    for (const name of [
      'Home',
      'Agents',
      'Live',
      'Proposals',
      'Users',
      'Audit',
      'Keys',
      'Log',
      'Health',
      'Verify',
    ]) {
      await run(name.toLowerCase(), name)
      await page.getByRole('heading', { level: 1, name }).waitFor()
    }
    await run('perm', 'Permissions')
    await page.getByRole('heading', { name: 'Permissions' }).waitFor()
    await run('dark', 'Appearance: dark')
    expect(await page.evaluate(() => document.documentElement.dataset['appearance'])).toBe('dark')
    await run('verify', 'Verify a file')
    await page.getByRole('heading', { name: 'Verify' }).waitFor()
    await run('agent', 'New agent')
    await page.getByRole('dialog', { name: 'New agent' }).getByLabel('Name').fill('created')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'created' }).waitFor()
    await run('new k', 'New key')
    await page.getByRole('dialog', { name: 'New key' }).waitFor()
    await page.keyboard.press('Escape')
    await run('sign', 'Sign out')
    await page.getByText('Signed out in all tabs').waitFor()
  })

  it('names the missing scope, and finds only the agents of a limited key', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['weather.l*', 'traffic'])
    const { page } = await openSignedIn(server.url, { key })
    await page.keyboard.press('Control+k')
    await field(page).fill('new')
    await page.getByText('Not permitted: New agent (needs agents:admin), New key (needs admin:*)').waitFor()
    expect(await options(page)).toEqual([])
    await page.keyboard.press('Enter')
    expect(await field(page).count()).toBe(1)
    await field(page).fill('w')
    await page.getByRole('option', { name: 'weather.london' }).waitFor()
    expect(await options(page)).toEqual(['weather.london'])
    await field(page).fill('tr')
    await page.getByRole('option', { name: 'traffic' }).waitFor()
    await field(page).fill('nothing-like-this')
    await page.getByText('No results for “nothing-like-this”').waitFor()
    expect(await axeFindings(page)).toEqual([])
  })

  it('finds agents by a part of their name, records by hash, proposals and keys by id', async () => {
    const [hash = ''] = await writeMany(server, 'weather.london', [{ n: 2 }])
    const removal = await call(server, `DELETE /v1/agents/weather.london/records/${hash}`)
    const gateway = await call(server, 'POST /v1/admin/api-keys', {
      body: { name: 'Sensor gateway', scopes: ['ingest'] },
    })
    const { page, allow } = await openSignedIn(server.url)
    const run = async (typed: string, result: string) => {
      await page.keyboard.press('Control+k')
      await field(page).fill(typed)
      await page.getByRole('option', { name: result }).waitFor()
      await page.keyboard.press('Enter')
    }
    await run('LOND', 'weather.london agent')
    await page.getByRole('heading', { name: 'weather.london' }).waitFor()
    for (const typed of [hash, `sha256:${hash}`, `${hash.slice(0, 8)}…`]) {
      await page.goto(`${server.url}/console#/home`)
      await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
      await run(typed, 'Record 2 of weather.london record')
      await page.getByRole('heading', { name: 'Record 2' }).waitFor()
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await run(removal.body.proposal_id, `Proposal ${removal.body.proposal_id} proposal`)
    await page.getByRole('heading', { name: 'Delete record 2' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    const keyId: string = gateway.body.key_id
    for (const typed of [keyId, `…${keyId.slice(-8)}`, 'gatew']) {
      await page.goto(`${server.url}/console#/home`)
      await run(typed, `Sensor gateway …${keyId.slice(-8)} key`)
      await page.getByRole('rowheader', { name: 'Sensor gateway' }).waitFor()
      expect(await page.getByRole('rowheader').count()).toBe(1)
    }
    allow('status of 404')
    await page.keyboard.press('Control+k')
    await field(page).fill('0123456789abcdef')
    await page.getByText('No results for “0123456789abcdef”').waitFor()
  })

  it('is accessible and fits, and works before the sign-in', async () => {
    const { page } = await openConsole(server.url, { at: '#/verify' })
    await page.getByRole('heading', { name: 'Verify' }).waitFor()
    await page.keyboard.press('Control+k')
    expect(await options(page)).toContain('Verify a file')
    expect(await options(page)).not.toContain('Agents')
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('is a menu with all screens on a phone, and a list of links on a wide page', async () => {
    const { page } = await openSignedIn(server.url)
    const nav = page.getByRole('navigation', { name: 'Screens' })
    const menu = page.getByRole('button', { name: 'Menu' })
    expect(await nav.getByRole('link').allTextContents()).toEqual(
      'Home Agents Live Proposals Users Audit Keys Log Health Verify API'.split(' '),
    )
    expect(await menu.isVisible()).toBe(false)
    await page.setViewportSize({ width: 360, height: 640 })
    expect(await nav.isVisible()).toBe(false)
    const bar = await page.getByRole('banner').boundingBox()
    expect(bar?.height).toBeLessThan(70)
    await menu.focus()
    await page.keyboard.press('Enter')
    expect(await menu.getAttribute('aria-expanded')).toBe('true')
    expect(await nav.getByRole('link').count()).toBe(11)
    expect(await faultsEverywhere(page)).toEqual([])
    await page.setViewportSize({ width: 360, height: 640 })
    await menu.focus()
    await page.keyboard.press('Escape')
    expect(await nav.isVisible()).toBe(false)
    await expect.poll(() => menu.evaluate((element) => element === document.activeElement)).toBe(true)
    await menu.click()
    await nav.getByRole('link', { name: 'API' }).scrollIntoViewIfNeeded()
    await nav.getByRole('link', { name: 'Log' }).click()
    await page.getByRole('heading', { name: 'Log' }).waitFor()
    expect(await nav.isVisible()).toBe(false)
  })
})
