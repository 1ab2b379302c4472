import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { logIn, register, registerMany, tryLogin, type Account } from '../support/auth/accounts.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { addPasskey, passkeyEnv } from '../support/auth/passkeys.js'
import {
  axeFindings,
  type ConsolePage,
  openConsole,
  openSignedIn,
  verdict,
} from '../support/console/console-page.js'
import { ask, scopedKey } from '../support/http/answers.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('users in the console', () => {
  let server: TestServer
  let browser: Browser
  let ada: Account
  let opened: ConsolePage | undefined

  beforeAll(async () => {
    server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '2', ...passkeyEnv } })
    browser = await sharedBrowser()
    ada = await register(server, 'ada@example.com')
    await logIn(server, ada)
    await addPasskey(server, ada.token)
    for (const guess of ['wrong and wrong again', 'wrong once more today'])
      await tryLogin(server, ada.email, guess)
    await registerMany(server, ['bea@example.com', 'bert@example.com', 'gone@example.com'])
    await newOrganism(server, 'acme')
    await registerIn(server, 'acme', 'bob@acme.example')
  })

  afterAll(async () => {
    await server?.stop()
  })

  afterEach(async () => {
    const complaints = opened?.complaints ?? []
    await opened?.context.close()
    opened = undefined
    expect(complaints).toEqual([])
  })

  const open = async (at: string): Promise<Page> => {
    opened = await openSignedIn(browser, server.url, { at })
    return opened.page
  }
  const trail = (page: Page, email: string) =>
    page.getByRole('table', { name: `Audit records of ${email}` }).locator('td.event')

  it('lists the users of a namespace, finds them by the beginning of an e-mail, and says who is locked', async () => {
    const page = await open('#/users')
    await page.getByText('4 users').waitFor()
    const cells = await page.getByRole('row', { name: /^ada@/ }).getByRole('cell').allTextContents()
    expect(cells[0]).toBe('no')
    expect(cells[2]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    await page.getByLabel('E-mail begins with').fill('BE')
    await page.getByText('2 users').waitFor()
    expect(await page.getByRole('rowheader').allTextContents()).toEqual([
      'bea@example.com',
      'bert@example.com',
    ])
    await page.getByLabel('E-mail begins with').fill('zoe')
    await page.getByText('No e-mail begins with “zoe”').waitFor()
    await page.getByLabel('Namespace').selectOption('acme')
    await page.getByRole('link', { name: 'bob@acme.example' }).click()
    await trail(page, 'bob@acme.example').first().waitFor()
    expect(await trail(page, 'bob@acme.example').allTextContents()).toEqual(['Registered'])
  })

  it('replaces app_metadata, counts the bytes left, and refuses what is no object', async () => {
    const page = await open('#/users/bea%40example.com')
    const field = page.getByLabel('app_metadata')
    await page.getByText('4,092 left of 4,096 bytes').waitFor()
    await field.fill('[1]')
    await page.getByText('Expected a JSON object').waitFor()
    await expect
      .poll(() => page.getByRole('button', { name: 'Replace app_metadata' }).isDisabled())
      .toBe(true)
    await field.fill('{"role":"é"}')
    await page.getByText('4,081 left of 4,096 bytes').waitFor()
    await page.getByRole('button', { name: 'Replace app_metadata' }).click()
    await page.getByText('Saved').waitFor()
    const { body } = await ask(server, 'GET /v1/auth/users')
    const [, bea] = body.users
    expect(bea).toMatchObject({ email: 'bea@example.com', app_metadata: { role: 'é' } })
    opened?.allow('status of 422')
    await field.fill(JSON.stringify({ long: 'x'.repeat(4_100) }))
    await page.getByText(/^1[0-9] too many of 4,096 bytes/).waitFor()
    await page.getByRole('button', { name: 'Replace app_metadata' }).click()
    await page.getByText('Expected app_metadata and user_metadata to take at most 4096 bytes').waitFor()
  })

  it('shows the audit trail with failed sign-ins, and proves every record of it', async () => {
    const page = await open('#/users/ada%40example.com')
    await trail(page, ada.email).first().waitFor()
    const facts = await page.locator('.line-facts > div').allTextContents()
    expect(facts).toContain('Passkeys1')
    const told = await trail(page, ada.email).allTextContents()
    expect(told.at(-1)).toBe('Registered')
    expect(told).toContain('Locked after failed sign-ins')
    await page.getByRole('button', { name: 'Verify these' }).click()
    expect(await verdict(page)).toBe(
      `Verified: each of the ${told.length} records listed is on the strand of default, unchanged, under the ` +
        `checkpoint signed by key …${(await publicKey()).slice(-8)}`,
    )
  })

  it('unlocks a user, ends the sessions after saying what stays, and has a record of each', async () => {
    const page = await open('#/users/ada%40example.com')
    await page.getByRole('button', { name: 'Unlock' }).click()
    await page.getByText('not locked').waitFor()
    await trail(page, ada.email).getByText('Unlocked by an administrator').waitFor()
    await logIn(server, ada)
    await page.reload()
    await page.getByRole('button', { name: 'End all sessions…' }).click()
    await page.getByText('Stays:').waitFor()
    await page.getByRole('heading', { name: 'End 3 sessions?' }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'End the sessions' }).click()
    await page.getByText('The user is not signed in anywhere').waitFor()
    await trail(page, ada.email).getByText('Sessions ended by an administrator: 3').waitFor()
    const { status } = await call(server, 'GET /v1/auth/me', { key: ada.token })
    expect(status).toBe(401)
  })

  const publicKey = async (): Promise<string> =>
    (await ask(server, 'GET /v1/agents/default/status')).body.public_key

  it('names the record that does not say what the list says', async () => {
    const page = await open('#/users')
    await page.route('**/v1/agents/default/query', async (route) => {
      const answer = await route.fetch()
      const text = (await answer.text()).replaceAll('127.0.0.1', '10.9.8.7')
      await route.fulfill({ response: answer, body: text })
    })
    await page.getByRole('link', { name: ada.email }).click()
    await page.getByText('10.9.8.7').first().waitFor()
    await page.getByRole('button', { name: 'Verify these' }).click()
    expect(await verdict(page)).toMatch(
      /^Not verified: record \d+ of default: the list shows it in other words$/,
    )
  })

  it('deletes a user once the e-mail is typed, and says first what ends and what stays', async () => {
    const page = await open('#/users/gone%40example.com')
    // What is above the button moves it no more.
    await trail(page, 'gone@example.com').first().waitFor()
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByText('Stays:').waitFor()
    const button = page.getByRole('button', { name: 'Delete the user' })
    await page.getByLabel(/^To confirm/).fill('gone@example')
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel(/^To confirm/).fill('gone@example.com')
    expect(await axeFindings(page)).toEqual([])
    await button.click()
    await page.getByText('3 users').waitFor()
    await page.goto(`${server.url}/console#/users/gone%40example.com`)
    await page.getByText('There is no user with this e-mail').waitFor()
  })

  it('says that sign-in is off, and which scope is missing', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    opened = await openSignedIn(browser, server.url, { key })
    await opened.page.getByRole('navigation').getByText('needs admin:organisms').waitFor()
    await opened.context.close()
    const some = await scopedKey(server, ['admin:organisms'])
    opened = await openSignedIn(browser, server.url, { at: '#/users', key: some.key })
    await opened.page.getByText('These users need a key with the scope admin:*').waitFor()
    await opened.page.getByLabel('Namespace').selectOption('acme')
    await opened.page.getByRole('rowheader', { name: 'bob@acme.example' }).waitFor()
    await opened.context.close()
    const free = await startAuthServer({ env: { SERVICE_DATA_OPEN: 'true' } })
    opened = await openConsole(browser, free.url, { at: '#/users' })
    await opened.page.getByText('These users need a key with the scope admin:*').waitFor()
    await opened.page.goto(`${free.url}/console#/audit`)
    await opened.page.getByText('No audit record fits').waitFor()
    await opened.context.close()
    await free.stop()
    const off = await startServer()
    opened = await openSignedIn(browser, off.url, { at: '#/users', allowed: 'status of 404' })
    await opened.page.getByText('Sign-in is off on this server').waitFor()
    await off.stop()
  })

  it('is used by the keyboard alone: from the list to an end of sessions that is not meant', async () => {
    const page = await open('#/users')
    await page.getByRole('link', { name: 'bert@example.com' }).waitFor()
    const tabTo = async (name: string): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        if ((await page.evaluate(() => document.activeElement?.textContent)) === name) return
        await page.keyboard.press('Tab')
      }
      throw new Error(`The key Tab does not lead to ${name}`)
    }
    await tabTo('bert@example.com')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'End all sessions…' }).waitFor()
    await trail(page, 'bert@example.com').first().waitFor()
    await tabTo('End all sessions…')
    await page.keyboard.press('Enter')
    await page.getByText('Stays:').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect
      .poll(() => page.evaluate(() => document.activeElement?.textContent))
      .toBe('End all sessions…')
    await tabTo('Verify these')
    await page.keyboard.press('Enter')
    expect(await verdict(page)).toMatch(/^Verified: each of the 1 record/)
  })

  // Colours do not depend on the width.
  describe.each([
    [1440, 'light'],
    [360, 'dark'],
  ] as const)('%i pixels wide', (width, colorScheme) => {
    it(`is accessible by axe and fits, ${colorScheme}`, async () => {
      const options = { viewport: { width, height: 800 }, colorScheme, reducedMotion: 'reduce' } as const
      opened = await openSignedIn(browser, server.url, { at: '#/users', options })
      const { page } = opened
      await page.getByText(/^[34] users$/).waitFor()
      expect(await axeFindings(page)).toEqual([])
      await page.getByRole('link', { name: ada.email }).click()
      await trail(page, ada.email).first().waitFor()
      await page.getByRole('button', { name: 'Verify these' }).click()
      await verdict(page)
      expect(await axeFindings(page)).toEqual([])
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
    })
  })
})
