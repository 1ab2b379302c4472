import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole, openSignedIn, signIn } from '../support/console/console-page.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer, testRootKey } from '../support/server/server.js'

describe.skipIf(noBrowser)('the session of all tabs of a browser', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(async () => {
    await server?.stop()
  })

  const newTab = async (context: BrowserContext, path: string): Promise<Page> => {
    const page = await context.newPage()
    await page.goto(`${server.url}${path}`)
    return page
  }
  const keyField = (docs: Page) => docs.getByRole('textbox', { name: 'API key', exact: true })
  const isSignedOut = async (page: Page, notice: string): Promise<void> => {
    await page.getByText(notice).waitFor()
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).toBe('{}')
  }

  it('signs in a new tab, a link that opens in a new tab, and the page of operations', async () => {
    const { page, context } = await openSignedIn(server.url, { at: '#/agents' })
    const link = page.getByRole('rowheader', { name: 'default' }).getByRole('link')
    const linked = context.waitForEvent('page')
    await link.click({ modifiers: ['ControlOrMeta'] })
    await (await linked).getByRole('heading', { name: 'default' }).waitFor()
    const typed = await newTab(context, '/console#/keys')
    await typed.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    await typed.reload()
    await typed.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
    const docs = await newTab(context, '/docs')
    await expect.poll(() => keyField(docs).inputValue()).toBe(testRootKey)
    const kept = await context.storageState({ indexedDB: true })
    expect(JSON.stringify(kept)).not.toContain(testRootKey)
    expect(kept.cookies).toEqual([])
  })

  it('signs out in all tabs, also in a tab that shows another page', async () => {
    const { page, context } = await openSignedIn(server.url)
    const other = await newTab(context, '/console#/agents')
    await other.getByRole('heading', { name: 'Agents' }).waitFor()
    const away = await newTab(context, '/console#/log')
    await away.getByRole('heading', { name: 'Log' }).waitFor()
    await away.goto(`${server.url}/healthz`)
    const docs = await newTab(context, '/docs')
    await expect.poll(() => keyField(docs).inputValue()).toBe(testRootKey)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await isSignedOut(page, 'Signed out in all tabs')
    await isSignedOut(other, 'Signed out in another tab')
    await expect.poll(() => keyField(docs).inputValue()).toBe('')
    await away.goBack()
    await away.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await away.evaluate(() => JSON.stringify({ ...sessionStorage }))).toBe('{}')
  })

  it('signs in the tabs that wait for a sign-in', async () => {
    const { page, context } = await openConsole(server.url)
    const other = await newTab(context, '/console#/agents')
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(page)
    await other.getByRole('rowheader', { name: 'default' }).waitFor()
  })

  it.each([[['sessionStorage']], [['localStorage', 'sessionStorage', 'BroadcastChannel']]])(
    'holds for a tab whose browser forbids %j',
    async (names) => {
      const { page, context } = await openConsole(server.url, { options: {} })
      await context.addInitScript((forbidden) => {
        for (const name of forbidden)
          Object.defineProperty(globalThis, name, {
            get() {
              throw new DOMException('The operation is insecure', 'SecurityError')
            },
          })
      }, names)
      await page.reload()
      await signIn(page)
      await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow')))
      await page.getByRole('link', { name: 'Agents', exact: true }).click()
      await page.getByRole('rowheader', { name: 'default' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByText('Signed out in all tabs').waitFor()
    },
  )

  it('stays at one of two servers that a proxy serves below one origin', async () => {
    const { page, context } = await openConsole(server.url, { options: {} })
    await context.route(/\/(east|west)\//, (route) =>
      route.continue({
        url: route
          .request()
          .url()
          .replace(/\/(east|west)\//, '/'),
      }),
    )
    await page.goto(`${server.url}/east/console#/agents`)
    await signIn(page)
    await page.goto(`${server.url}/west/console#/agents`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.goto(`${server.url}/east/console#/agents`)
    await page.getByRole('rowheader', { name: 'default' }).waitFor()
  })

  it('has no key after the last tab of the console is closed, and the page of operations gives none', async () => {
    const { page, context } = await openSignedIn(server.url)
    const docs = await newTab(context, '/docs')
    await expect.poll(() => keyField(docs).inputValue()).toBe(testRootKey)
    await page.close()
    const later = await newTab(context, '/console#/agents')
    await later.getByRole('heading', { name: 'Sign in' }).waitFor()
    await docs.close()
    await later.close()
    const last = await newTab(context, '/docs')
    await last.getByRole('heading', { level: 1 }).first().waitFor()
    expect(await keyField(last).inputValue()).toBe('')
  })

  it('stays while there is input in one of the tabs, and ends in all of them together', async () => {
    const { page, context } = await openConsole(server.url, { options: {} })
    await context.clock.install()
    await signIn(page)
    const other = await newTab(context, '/console#/agents')
    await other.getByRole('button', { name: 'Sign out' }).waitFor()
    await context.clock.fastForward('20:00')
    await page.bringToFront()
    await page.keyboard.press('Shift')
    await context.clock.fastForward('20:00')
    for (const tab of [page, other]) await tab.getByRole('button', { name: 'Sign out' }).waitFor()
    await context.clock.fastForward('31:00')
    for (const tab of [page, other]) await isSignedOut(tab, 'Signed out after 30 minutes of inactivity')
  })

  it('ends by the first input after the machine slept for longer than that', async () => {
    const { page, context } = await openConsole(server.url, { options: {} })
    await context.clock.install()
    await signIn(page)
    await context.clock.setSystemTime(Date.now() + 31 * 60_000)
    await page.keyboard.press('Shift')
    await isSignedOut(page, 'Signed out after 30 minutes of inactivity')
  })

  it('is not ended by what earlier sessions began: a request that is refused, a search for the key, a dialog', async () => {
    const { page, context } = await openConsole(server.url, { options: {}, allowed: 'status of 401' })
    await context.clock.install()
    let refuse = (): void => undefined
    const refused = new Promise<void>((resolve) => (refuse = resolve))
    await context.route('**/v1/admin/api-keys*', async (route) => {
      await refused
      await route.fulfill({ status: 401, json: { code: 'unauthorized' } })
    })
    const asked = page.waitForRequest('**/v1/admin/api-keys*')
    await signIn(page)
    await page.getByRole('link', { name: 'Proposals', exact: true }).click()
    await asked
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'action' }).fill('new key')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'New key' }).waitFor()
    const other = await newTab(context, '/healthz')
    await other.evaluate(() => localStorage.setItem('strandfast.session /', 'of no tab'))
    await page.getByText('Signed out in another tab').waitFor()
    await signIn(page, (await scopedKey(server, ['records:read'])).key)
    expect(await page.getByRole('dialog').count()).toBe(0)
    const answered = page.waitForResponse('**/v1/admin/api-keys*')
    refuse()
    await (await answered).finished()
    await context.clock.fastForward(2_000)
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByRole('rowheader', { name: 'default' }).waitFor()
  })

  it('ends when the key expires, without a request of a user', async () => {
    const { body } = await call(server, 'POST /v1/admin/api-keys', {
      body: { name: 'short', scopes: ['records:read'], agents: [], expires_in_secs: 600 },
    })
    const { page, context } = await openConsole(server.url, {
      at: '#/verify',
      options: {},
      allowed: 'status of 401',
    })
    await context.clock.install()
    await page.goto(`${server.url}/console#/agents`)
    await signIn(page, body.key)
    await page.getByRole('link', { name: 'Verify', exact: true }).click()
    await page.getByRole('heading', { name: 'Verify' }).waitFor()
    await call(server, `DELETE /v1/admin/api-keys/${body.key_id}`)
    await context.clock.fastForward('09:00')
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(1)
    await context.clock.fastForward('02:00')
    await page.getByRole('button', { name: 'Sign out' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Strandfast' }).click()
    await page.getByText('The server no longer accepts this key').waitFor()
  })
})
