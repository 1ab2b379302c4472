import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { auditTypes } from '../../src/auth/audit.js'
import { verifyExport } from '../../src/client/verify-export.js'
import { authMeanings } from '../../src/console/parts/audit-events.js'
import { logIn, register, tryLogin, type Account } from '../support/auth/accounts.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

describe('the labels of audit records', () => {
  it('exist for every type that the server writes', () => {
    expect(Object.keys(authMeanings).sort()).toEqual([...auditTypes].sort())
  })
})

describe.skipIf(noBrowser)('the audit screen of the console', () => {
  let server: TestServer
  let ada: Account

  beforeAll(async () => {
    server = await startAuthServer()
    ada = await register(server, 'ada@example.com')
    await logIn(server, ada)
    await tryLogin(server, ada.email, 'wrong and wrong again')
    await newOrganism(server, 'acme')
    await registerIn(server, 'acme', 'bob@acme.example')
    await scopedKey(server, ['records:read'])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key?: string): Promise<Page> => {
    return (await openSignedIn(server.url, { at, key })).page
  }
  const events = (page: Page) => page.locator('td.event').allTextContents()
  const rowsOf = (page: Page, agent: string) => page.getByRole('table', { name: `Audit records of ${agent}` })
  const waitForRows = (page: Page, count: number) =>
    page.waitForFunction((wanted) => document.querySelectorAll('.audit tbody tr').length === wanted, count)

  it('lists successful and failed sign-ins, newest first, with a chart of the failures', async () => {
    const page = await open('#/audit')
    await rowsOf(page, 'default').waitFor()
    expect(await events(page)).toEqual([
      'Sign-in failed · password · wrong_password',
      'Signed in by password',
      'Registered',
    ])
    const [first] = await page.locator('.audit tbody tr').all()
    const cells = (await first?.getByRole('cell').allTextContents()) ?? []
    expect(cells[2]).toBe(`…${ada.userId.slice(-8)}`)
    await first?.getByRole('link', { name: `…${ada.userId.slice(-8)}` }).click()
    await page.getByRole('heading', { level: 1, name: ada.email }).waitFor()
    expect(new URL(page.url()).hash).toBe(`#/users/${encodeURIComponent(ada.email)}`)
    await page.goBack()
    await rowsOf(page, 'default').waitFor()
    expect(cells[3]).toMatch(/127\.0\.0\.1|::1/)
    expect(cells.at(-1)).toBe('failure')
    await page.getByRole('img', { name: /^1 failure/ }).waitFor()
  })

  it('filters by event, outcome and user immediately', async () => {
    const page = await open('#/audit')
    await rowsOf(page, 'default').waitFor()
    await page.getByLabel('Outcome').selectOption('failure')
    await waitForRows(page, 1)
    await page.getByLabel('Outcome').selectOption('success')
    await waitForRows(page, 2)
    await page.getByLabel('Event').selectOption('Registered')
    await waitForRows(page, 1)
    await page.getByLabel('User ID, e-mail or its HMAC').fill(ada.userId)
    await waitForRows(page, 1)
    await page.getByLabel('User ID, e-mail or its HMAC').fill('usr_none')
    await page.getByText('No audit records match').waitFor()
    await page.getByLabel('Event').selectOption('All')
    await page.getByLabel('Outcome').selectOption('All')
    // The user of an e-mail: also the failed sign-in, whose record has no user.
    await page.getByLabel('User ID, e-mail or its HMAC').fill('Ada@Example.com')
    await waitForRows(page, 3)
    await page.getByLabel('User ID, e-mail or its HMAC').fill('eve@example.com')
    await page.getByText('No user has the e-mail “eve@example.com”').waitFor()
  })

  it('finds the users of an organization by e-mail, and links to them', async () => {
    const page = await open('#/audit/acme%3A%3Aauth')
    await rowsOf(page, 'acme::auth').waitFor()
    await page.getByLabel('User ID, e-mail or its HMAC').fill('bob@acme.example')
    await waitForRows(page, 1)
    await page.locator('td[data-name=User] a').click()
    await page.getByRole('heading', { level: 1, name: 'bob@acme.example' }).waitFor()
    await page.goto(`${server.url}/console#/users/~usr_${'0'.repeat(32)}`)
    await page.getByText(`User usr_${'0'.repeat(32)} not found`).waitFor()
  })

  it('finds users by e-mail and id in “Go to”, in every organization', async () => {
    const page = await open('#/home')
    const find = async (typed: string, name: string) => {
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox', { name: /^Agent/ }).fill(typed)
      await page.getByRole('option', { name: `${name} user` }).waitFor()
      await page.keyboard.press('Enter')
    }
    await find('bob@', 'bob@acme.example of acme')
    await page.getByRole('heading', { level: 1, name: 'bob@acme.example' }).waitFor()
    await find(ada.userId, ada.email)
    await page.getByRole('heading', { level: 1, name: ada.email }).waitFor()
    await find(`user::${ada.userId}`, ada.email)
    await page.goto(`${server.url}/console#/home`)
    await find('ada', ada.email)
    await page.getByRole('heading', { level: 1, name: ada.email }).waitFor()
  })

  it('shows a key that cannot read users no links and no e-mails', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const page = await open('#/audit', key)
    await rowsOf(page, 'default').waitFor()
    expect(await page.locator('td[data-name=User] a').count()).toBe(0)
    await page.getByLabel('User ID, e-mail or its HMAC').fill(ada.email)
    await page.getByText('This key cannot look up e-mails').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Agent/ }).fill(ada.email)
    await page.getByText(`No results for “${ada.email}”`).waitFor()
  })

  it('opens the drawer of a record, and proves the record there', async () => {
    const page = await open('#/audit')
    await rowsOf(page, 'default').waitFor()
    const link = page.getByRole('link', { name: /^Record \d+$/ }).first()
    const name = (await link.getAttribute('aria-label')) ?? ''
    await link.click()
    await page.getByRole('heading', { name }).waitFor()
    await page.getByRole('button', { name: 'Prove' }).click()
    expect(await verdict(page)).toMatch(/^Consistent; the signer is not known to you: record \d+ of default/)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(new URL(page.url()).hash).toBe('#/audit/default')
  })

  it('exports the chosen period with a checkpoint, so that the file verifies', async () => {
    const page = await open('#/audit')
    await page.getByLabel('Time', { exact: true }).selectOption('All')
    await rowsOf(page, 'default').waitFor()
    await page.getByRole('button', { name: 'Export this period' }).click()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save file' }).click()
    const file = await download
    const text = readFileSync(await file.path(), 'utf8')
    const { body } = await call(server, 'GET /v1/agents/default/status')
    expect(await verifyExport(text, { publicKey: body.public_key })).toMatchObject({ ok: true })
    expect(text).toContain('"checkpoint"')
  })

  it('shows the strands of organisms and of the server’s keys', async () => {
    const page = await open('#/audit')
    await page.getByLabel('Strand').selectOption('Users of acme')
    await rowsOf(page, 'acme::auth').waitFor()
    expect(await events(page)).toEqual(['Registered', 'Users of an organization initialized'])
    await page.getByLabel('Strand').selectOption('The server and its keys (server::audit)')
    await rowsOf(page, 'server::audit').waitFor()
    // The key of this test file, by its name.
    expect((await events(page))[0]).toBe('API key created test')
    const made = page.locator('.audit tbody tr').first()
    expect(await made.locator('td[data-name=User]').textContent()).toBe('Root key')
    await made.getByRole('link', { name: 'test' }).click()
    await page.getByRole('rowheader', { name: /^test/ }).waitFor()
  })

  it('finds the strand of a default agent with another name', async () => {
    const named = await startAuthServer({ env: { SERVICE_AGENT_ID: 'office' } })
    onTestFinished(() => named.stop())
    await register(named, 'ada@example.com')
    const { page } = await openSignedIn(named.url, { at: '#/audit' })
    await rowsOf(page, 'office').waitFor()
    expect(await events(page)).toEqual(['Registered'])
  })

  it('begins with a strand that a limited key can reach, and shows it and a user only what they can use', async () => {
    const screens = (page: Page) => page.getByRole('navigation').getByRole('link').allTextContents()
    const strands = (page: Page) => page.getByLabel('Strand').getByRole('option').allTextContents()
    const { key } = await scopedKey(server, ['admin:*'], ['acme::*'])
    const page = await open('#/audit', key)
    await rowsOf(page, 'acme::auth').waitFor()
    expect(await strands(page)).toEqual(['Users of acme'])
    expect(await screens(page)).toEqual(
      'Home Agents Live Proposals Audit Verify API'.split(' ').concat('4 hidden screens'),
    )
    await page.getByRole('link', { name: '4 hidden screens' }).hover()
    expect(await page.getByRole('link', { name: '4 hidden screens' }).getAttribute('title')).toContain(
      'Users (access to all agents), Keys (access to all agents), Log (access to server::log), Health (access',
    )
    const other = await scopedKey(server, ['records:read'], ['fleet'])
    await (await open('#/audit', other.key)).getByText('No strand of audit records').waitFor()
    const { token } = await logIn(server, ada)
    const { page: ofUser } = await openSignedIn(server.url, {
      at: '#/audit',
      key: token,
      allowed: 'status of 403',
    })
    await ofUser.getByText('this key has no access to it').or(rowsOf(ofUser, 'default')).waitFor()
    expect(await strands(ofUser)).toEqual(['Users without an organization (default)'])
    expect(await screens(ofUser)).toEqual(
      'Home Agents Live Audit Verify API'.split(' ').concat('5 hidden screens'),
    )
  })

  it('names a missing agent and a missing scope', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/audit/elsewhere', allowed: 'status of 404' })
    await page.getByText('Agent “elsewhere” not found').waitFor()
    await page.getByLabel('Name of the default agent').fill('default')
    await page.keyboard.press('Enter')
    await rowsOf(page, 'default').waitFor()
    const { key } = await scopedKey(server, ['ingest'])
    const limited = await open('', key)
    await limited.getByRole('link', { name: '8 hidden screens' }).waitFor()
  })
})
