import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { logIn, register, registerMany, tryLogin, type Account } from '../support/auth/accounts.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { addPasskey, passkeyEnv } from '../support/auth/passkeys.js'
import { axeFindings, type ConsolePage, openSignedIn, verdict } from '../support/console/console-page.js'
import { checkedCall, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('users in the console', () => {
  let server: TestServer
  let ada: Account
  let opened: ConsolePage

  beforeAll(async () => {
    server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '2', ...passkeyEnv } })
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

  const open = async (at: string): Promise<Page> => {
    opened = await openSignedIn(server.url, { at })
    return opened.page
  }
  const trail = (page: Page, email: string) =>
    page.getByRole('table', { name: `Audit records of ${email}` }).locator('td.event')

  it('lists the users of a namespace, finds them by e-mail prefix, and shows until when they are locked', async () => {
    const page = await open('#/users')
    await page.getByText('4 users').waitFor()
    const cells = await page.getByRole('row', { name: /^ada@/ }).getByRole('cell').allTextContents()
    expect(cells[0]).toBe('No')
    expect(cells[2]).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} [+-]\d\d:\d\d$/)
    await page.getByLabel('E-mail begins with').fill('BE')
    await page.getByText('2 users').waitFor()
    expect(await page.getByRole('rowheader').allTextContents()).toEqual([
      'bea@example.com',
      'bert@example.com',
    ])
    await page.getByLabel('E-mail begins with').fill('zoe')
    await page.getByText('No users match “zoe”').waitFor()
    await page.getByLabel('Organization').selectOption('acme')
    await page.getByRole('link', { name: 'bob@acme.example' }).click()
    await trail(page, 'bob@acme.example').first().waitFor()
    expect(await trail(page, 'bob@acme.example').allTextContents()).toEqual(['Registered'])
  })

  it('replaces app_metadata, counts the remaining bytes, and accepts only objects', async () => {
    const page = await open('#/users/bea%40example.com')
    const field = page.getByLabel('app_metadata')
    await page.getByText('4,092 of 4,096 bytes left').waitFor()
    await field.fill('[1]')
    await page.getByText('Expected a JSON object').waitFor()
    await expect
      .poll(() => page.getByRole('button', { name: 'Replace app_metadata' }).isDisabled())
      .toBe(true)
    await field.fill('{"role":"é"}')
    await page.getByText('4,081 of 4,096 bytes left').waitFor()
    await page.getByRole('button', { name: 'Replace app_metadata' }).click()
    await page.getByText('Saved').waitFor()
    const { body } = await checkedCall(server, 'GET /v1/auth/users')
    const [, bea] = body.users
    expect(bea).toMatchObject({ email: 'bea@example.com', app_metadata: { role: 'é' } })
    opened.allow('status of 422')
    await field.fill(JSON.stringify({ long: 'x'.repeat(4_100) }))
    await page.getByText(/^1[0-9] bytes over the limit of 4,096/).waitFor()
    await page.getByRole('button', { name: 'Replace app_metadata' }).click()
    await page.getByText('Expected app_metadata and user_metadata to take at most 4096 bytes').waitFor()
  })

  it('shows the audit trail with failed sign-ins, and proves each of its records', async () => {
    const page = await open('#/users/ada%40example.com')
    await trail(page, ada.email).first().waitFor()
    const facts = await page.locator('.line-facts > div').allTextContents()
    expect(facts).toContain('Passkeys1')
    const events = await trail(page, ada.email).allTextContents()
    expect(events.at(-1)).toBe('Registered')
    expect(events).toContain('Locked after failed sign-ins')
    await page.getByRole('button', { name: 'Verify these' }).click()
    expect(await verdict(page)).toBe(
      `Consistent; the signer is not known to you: each of the ${events.length} records listed is unchanged and on the strand of default, under the ` +
        `checkpoint signed with key …${(await publicKey()).slice(-8)}`,
    )
  })

  it('unlocks a user, ends the sessions after listing what stays, and shows the record of each change', async () => {
    const page = await open('#/users/ada%40example.com')
    await page.getByRole('button', { name: 'Unlock' }).click()
    await page.getByText('Not locked').waitFor()
    await trail(page, ada.email).getByText('Unlocked by an administrator').waitFor()
    await logIn(server, ada)
    await page.reload()
    await page.getByRole('button', { name: 'End all sessions…' }).click()
    expect(await page.getByRole('table', { name: 'Sessions' }).getByText('Password').count()).toBe(3)
    await page.getByText('Stays:').waitFor()
    await page.getByRole('heading', { name: 'End 3 sessions?' }).waitFor()
    expect(await axeFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'End sessions' }).click()
    await page.getByText('The user is not signed in anywhere').waitFor()
    await trail(page, ada.email).getByText('Sessions ended by an administrator: 3').waitFor()
    const { status } = await call(server, 'GET /v1/auth/me', { key: ada.token })
    expect(status).toBe(401)
  })

  const publicKey = async (): Promise<string> =>
    (await checkedCall(server, 'GET /v1/agents/default/status')).body.public_key

  it('names a record that does not match its row in the list', async () => {
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
      /^Not verified: record \d+ of default: the record does not match its row in the list$/,
    )
  })

  it('deletes a user after the e-mail is typed, and lists before what ends and what stays', async () => {
    const page = await open('#/users/gone%40example.com')
    // What is above the button moves it no more.
    await trail(page, 'gone@example.com').first().waitFor()
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByText('Stays:').waitFor()
    const button = page.getByRole('button', { name: 'Delete user' })
    await page.getByLabel(/^To confirm/).fill('gone@example')
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel(/^To confirm/).fill('gone@example.com')
    expect(await axeFindings(page)).toEqual([])
    await button.click()
    await page.getByText('3 users').waitFor()
    await page.goto(`${server.url}/console#/users/gone%40example.com`)
    await page.getByText('User “gone@example.com” not found').waitFor()
  })

  it('reports that sign-in is disabled, and names the missing scope', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const reader = await openSignedIn(server.url, { key })
    await reader.page.getByRole('link', { name: '4 hidden screens' }).waitFor()
    const some = await scopedKey(server, ['admin:organisms'])
    const { page } = await openSignedIn(server.url, { at: '#/users', key: some.key })
    await page.getByText('Managing these users needs a key with the scope admin:*').waitFor()
    await page.getByLabel('Organization').selectOption('acme')
    await page.getByRole('rowheader', { name: 'bob@acme.example' }).waitFor()
    const off = await startServer()
    onTestFinished(() => off.stop())
    const ofOff = await openSignedIn(off.url, { at: '#/users', allowed: 'status of 404' })
    await ofOff.page.getByText('Sign-in is disabled on this server').waitFor()
  })

  it('works with the keyboard alone: from the list to ending all sessions, which is cancelled', async () => {
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
    const text = await verdict(page)
    expect(text).toMatch(/^Consistent; the signer is not known to you: each of the 1 record/)
    expect(await page.evaluate(() => document.activeElement?.textContent)).toContain(text)
  })
})
