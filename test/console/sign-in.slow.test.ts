import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openConsole, openSignedIn, signIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { freePort } from '../support/server/free-port.js'
import { type TestServer, startServer, testRootKey } from '../support/server/server.js'

describe.skipIf(noBrowser)('signing in to the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(async () => {
    await server?.stop()
  })

  const stored = (page: Page) =>
    page.evaluate(() => ({
      local: JSON.stringify({ ...localStorage }),
      session: JSON.stringify({ ...sessionStorage }),
      cookie: document.cookie,
      address: location.href,
    }))

  it('shows the identity and the permissions of the key, and stores the key in the tab only', async () => {
    const { page, requestedUrls } = await openConsole(server.url)
    await page.getByText('The server is ready').waitFor()
    await signIn(page)
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.getByRole('link', { name: 'Root key' }).click()
    await page.getByRole('heading', { name: 'Root key' }).waitFor()
    await page.getByText('Everything').waitFor()
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    const { local, session, cookie, address } = await stored(page)
    expect(session).toContain(testRootKey)
    expect(local + cookie + address).not.toContain(testRootKey)
    expect(requestedUrls.filter((url) => url.includes(testRootKey))).toEqual([])
    await page.reload()
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('Signed out in all tabs').waitFor()
    expect((await stored(page)).session).toBe('{}')
  })

  it('does not show Home after a link was followed in the moment of the sign-in', async () => {
    const { page } = await openConsole(server.url)
    // As on a busy machine, the console gets the event some time after the address has changed.
    await page.addInitScript(() => {
      addEventListener('hashchange', (event) => {
        if (!event.isTrusted) return
        event.stopImmediatePropagation()
        setTimeout(() => dispatchEvent(new HashChangeEvent('hashchange')), 300)
      })
    })
    await page.reload()
    await page.evaluate(() => {
      new MutationObserver((_, observer) => {
        if (!document.body.textContent.includes('Sign out')) return
        observer.disconnect()
        location.hash = '#/keys'
      }).observe(document.body, { childList: true, subtree: true })
    })
    await signIn(page)
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    expect(page.url()).toBe(`${server.url}/console#/keys`)
  })

  it('leaves the focus where the user has put it', async () => {
    const { page } = await openConsole(server.url, { at: '#/agents' })
    // As on a busy machine, effects run some time after the page has changed.
    await page.addInitScript(() => {
      const after = globalThis.setTimeout.bind(globalThis)
      globalThis.requestAnimationFrame = (run) => Number(after(() => run(performance.now()), 500))
      Object.assign(globalThis, { setTimeout: (run: () => void, ms = 0) => after(run, Math.max(ms, 500)) })
    })
    await page.reload()
    await signIn(page)
    const field = page.getByLabel('Name contains')
    await field.focus()
    await page.waitForTimeout(1_500)
    expect(await field.evaluate((element) => element === document.activeElement)).toBe(true)
  })

  it('explains where the key of a new server is', async () => {
    const { page } = await openConsole(server.url)
    await page.getByText('Where is the key?').click()
    await page.getByText('data/root.key').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('refuses an unknown key with a message', async () => {
    const { page, allow } = await openConsole(server.url)
    allow('status of 401')
    await page.getByLabel('Root key or API key').fill('no-such-key-0123456789abcdefghijklmn')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The server does not know this key').waitFor()
    expect((await stored(page)).session).toBe('{}')
  })

  it('hides the screens that the key cannot use, and says in one line which and why', async () => {
    const { key } = await scopedKey(server, ['ingest'])
    const { page } = await openSignedIn(server.url, { key })
    await page.getByText('No records or proposals to show').waitFor()
    await page.getByRole('link', { name: 'Permissions' }).click()
    await page.getByRole('heading', { name: 'Key “test”' }).waitFor()
    expect(await page.getByRole('link', { name: 'Agents', exact: true }).count()).toBe(0)
    const why = await page.getByText('Screens that need other permissions').textContent()
    expect(why).toBe(
      'Screens that need other permissions: Agents (records:read), Live (records:read), ' +
        'Proposals (proposals:decide), Users (admin:organisms), Audit (records:read), Keys (admin:*), ' +
        'Log (records:read), Health (admin:*).',
    )
    await page.getByRole('link', { name: 'Home', exact: true }).click()
    await page.getByRole('link', { name: '8 hidden screens' }).click()
    await page.getByText('Screens that need other permissions').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  const reading = ['Agents', 'Live', 'Audit', 'Log']
  it.each([
    ['records:read', reading],
    ['records:write', []],
    ['records:delete', []],
    ['records:erase', []],
    ['ingest', []],
    ['agents:admin', []],
    ['proposals:decide', ['Proposals']],
    ['admin:organisms', ['Users']],
    ['admin:*', [...reading, 'Proposals', 'Users', 'Keys', 'Health']],
  ] as const)('opens only the screens of the scope %s', async (scope, expected) => {
    const { key } = await scopedKey(server, [scope])
    const { page, requestedUrls, allow } = await openSignedIn(server.url, { key })
    const links = await page.getByRole('navigation').getByRole('link').allTextContents()
    const open = links.filter((name) => !name.endsWith('hidden screens'))
    expect(open.sort()).toEqual(['Home', 'Verify', 'API', ...expected].sort())
    // Sign-in is disabled on this server, so the screen of users gets 404.
    allow('status of 404')
    for (const name of expected) {
      await page.getByRole('link', { name, exact: true }).click()
      await page.getByRole('heading', { name, level: 1 }).waitFor()
    }
    expect(requestedUrls.length).toBeGreaterThan(1)
    expect(await page.getByText('This key cannot').count()).toBe(0)
  })

  it('removes a key from the address and does not use it', async () => {
    const { page } = await openConsole(server.url, { at: `?key=${testRootKey}` })
    await page.getByText('It was removed and not used').waitFor()
    expect(page.url()).toBe(`${server.url}/console`)
    await page.evaluate((key) => {
      location.hash = `#key=${key}`
    }, testRootKey)
    await page.waitForFunction(() => location.hash === '')
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0)
  })

  it('signs out after 30 minutes of inactivity, and when the server no longer accepts the key', async () => {
    const { key, key_id: keyId } = await scopedKey(server, ['records:read'])
    const { page, allow } = await openConsole(server.url, { options: {} })
    await page.clock.install()
    await signIn(page)
    await page.clock.fastForward('29:00')
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(1)
    await page.clock.fastForward('02:00')
    await page.getByText('Signed out after 30 minutes').waitFor()
    await signIn(page, key)
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByRole('rowheader', { name: 'default' }).waitFor()
    const deleted = await fetch(`${server.url}/v1/admin/api-keys/${keyId}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${testRootKey}` },
    })
    expect(deleted.status).toBe(200)
    allow('status of 401')
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.getByText('The server no longer accepts this key').waitFor()
    expect((await stored(page)).session).toBe('{}')
  })

  it('requires the user to accept the risk of a connection without TLS before a key can be typed', async () => {
    // Without TLS, the browser reports that it ignores this header.
    const allowed = 'Cross-Origin-Opener-Policy'
    const { page } = await openConsole(server.url.replace('127.0.0.1', 'console.example'), { allowed })
    await page.getByText('This connection is not encrypted').waitFor()
    await expect.poll(() => page.getByLabel('Root key or API key').isDisabled()).toBe(true)
    await page.getByRole('checkbox').check()
    await signIn(page)
  })

  it('reports that the server does not respond, and that it is back', async () => {
    const env = { SERVICE_PORT: String(await freePort()) }
    const first = await startServer({ env })
    const { page, allow } = await openSignedIn(first.url)
    allow('ERR_CONNECTION_REFUSED')
    // The requests of Home while the server stops.
    allow('status of 503')
    await first.halt()
    await page.getByRole('link', { name: 'Agents', exact: true }).click()
    await page.getByText('The server does not respond').waitFor()
    // A server that starts may listen before it is ready.
    const starting = { status: 503, contentType: 'application/problem+json', body: '{"detail":"It starts"}' }
    await page.route('**/readyz', (route) => route.fulfill(starting))
    await page.getByText('It starts').waitFor()
    const second = await startServer({ env, dataDir: first.dataDir })
    onTestFinished(() => second.stop())
    await page.unroute('**/readyz')
    await page.getByText('The server is back').waitFor()
    await page.getByRole('rowheader', { name: 'default' }).waitFor()
  })
})
