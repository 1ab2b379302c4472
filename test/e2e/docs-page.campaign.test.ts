import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContext, Locator, Page, Request } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { errorCatalogue } from '../../src/base/errors.js'
import { operationIdOf } from '../../src/front/http/openapi/document.js'
import { rootPathOf } from '../../src/front/routes/auth/auth-routes.js'
import { pageHeaders } from '../../src/front/routes/page-files.js'
import { allRoutes } from '../../src/front/routes/routes.js'
import { axeFindings } from '../support/console/console-page.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer, testRootKey } from '../support/server/server.js'

const folder = join(import.meta.dirname, '../../dist/program/docs')

/** The page shows an auth route once, and mentions the same route of organisms in its text. */
const routes = allRoutes('default').filter(
  (route) => route.kind !== 'auth' || rootPathOf(route) === undefined,
)

describe.skipIf(noBrowser)('the documentation page', () => {
  let service: TestServer
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let requests: Request[]
  let complaints: string[]
  let complaintsAllowed: string

  beforeAll(async () => {
    service = await startServer()
    browser = await sharedBrowser()
  })

  afterAll(async () => {
    await service?.stop()
  })

  const open = async (options: Parameters<Browser['newContext']>[0]) => {
    requests = []
    complaints = []
    complaintsAllowed = 'status of 401'
    context = await browser.newContext(options)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.url })
    page = await context.newPage()
    page.on('request', (request) => requests.push(request))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      // The browser reports each refused request here, and some tests provoke refusals.
      if (message.type() === 'error' && !message.text().includes(complaintsAllowed))
        complaints.push(message.text())
    })
    const polled = page.waitForResponse(/\/readyz$/)
    const response = await page.goto(`${service.url}/docs`)
    expect(response?.headers()['content-security-policy']).toBe(
      new Map(pageHeaders).get('Content-Security-Policy'),
    )
    await page.locator('article').first().waitFor()
    // The session of the console is looked for after the page has loaded.
    await polled
  }

  beforeEach(() => open({ viewport: { width: 1440, height: 900 } }))

  afterEach(async () => {
    await context.close()
    expect(complaints).toEqual([])
  })

  const operation = (id: string) => page.locator(`article#${id}`)

  it('shows every operation with its method and path, in the contents and in the text', async () => {
    const shown = await page.locator('article').evaluateAll((articles) =>
      articles.map((article) => ({
        id: article.id,
        heading: article.querySelector('h3')?.textContent,
        path: article.querySelector('.signature code')?.textContent,
        method: article.querySelector('.signature .method')?.textContent,
      })),
    )
    const expected = routes.map((route) => ({
      id: operationIdOf(route),
      heading: route.docs.summary,
      path: route.path.replaceAll(/:(\w+)/g, '{$1}'),
      method: route.method === 'del' ? 'delete' : route.method,
    }))
    const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id)
    expect(shown.sort(byId)).toEqual(expected.sort(byId))
    const links = await page
      .locator('nav a')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href')))
    for (const { id } of expected) expect(links.filter((href) => href === `#${id}`)).toEqual([`#${id}`])
  })

  it('requests only its own files and the document, from no other host, and is small', () => {
    const addresses = requests.map((request) => request.url()).filter((url) => !url.startsWith('data:'))
    const kinds = addresses.map((url) => url.replace(service.url, '').replace(/-\w+(\.\w+)$/, '$1'))
    expect(kinds.sort()).toEqual([
      '/docs',
      '/docs/console-session.js',
      '/docs/main.js',
      '/docs/style.css',
      '/openapi.json',
      '/readyz',
    ])
    // A browser loads each file by brotli; the folder has them by gzip too.
    const loaded = readdirSync(folder).filter((name) => name.endsWith('.br'))
    const sizes = new Map(loaded.map((name) => [name.split('-')[0], statSync(join(folder, name)).size]))
    expect([...sizes.keys()].sort()).toEqual(['console', 'index.html.br', 'main', 'style'])
    const session = sizes.get('console') ?? 0
    const all = [...sizes.values()].reduce((sum, size) => sum + size, 0)
    expect(all - session).toBeLessThan(30_000)
    expect(session).toBeLessThan(20_000)
  })

  it('resolves references: the table of the answer contains nested members', async () => {
    const table = operation('postAgentQuery').locator('.answers table').first()
    const members = await table.locator('td.member code').allTextContents()
    expect(members).toEqual(expect.arrayContaining(['records', 'payload', 'signature', 'next_cursor']))
    const request = operation('postAgentQuery').locator('.about > table .either')
    expect(await request.allTextContents()).toEqual([
      'either LatestQuery',
      'or TimeRangeQuery',
      'or HashQuery',
      'or ChainHeadQuery',
    ])
  })

  it('finds operations by words after /, and shows all again on Escape', async () => {
    await page.keyboard.press('/')
    await page.keyboard.type('restore')
    expect(await page.locator('article:visible').count()).toBe(1)
    expect(await page.locator('nav a:visible').count()).toBe(1)
    await page.keyboard.type(' nothing of this kind')
    await page.getByText('No operations match').waitFor()
    await page.keyboard.press('Escape')
    expect(await page.locator('article:visible').count()).toBe(routes.length)
  })

  it('copies a curl command without the key', async () => {
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    await operation('postAgentRecords').getByRole('button', { name: 'Copy' }).first().click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toContain(`curl -X POST '${service.url}/v1/agents/sensors/records'`)
    expect(copied).toContain('-H "Authorization: Bearer $STRANDFAST_KEY"')
    expect(copied).not.toContain(testRootKey)
  })

  it('sends the values of the form with the key, and shows status, headers and body', async () => {
    await call(service, 'POST /v1/agents', { body: { name: 'doors', zone: 'free' } })
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    const article = operation('postAgentRecords')
    await article.locator('.try summary').first().click()
    await article.getByLabel('agent', { exact: true }).fill('doors')
    await article.getByLabel('Idempotency-Key').fill('once')
    await article.getByLabel('Body', { exact: true }).fill('{"data":{"open":true}}')
    expect(await article.locator('pre').first().textContent()).toContain("-H 'Idempotency-Key: once'")
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    expect(await article.locator('.result > p').textContent()).toContain('201 Created')
    expect(await article.locator('.result dl').textContent()).toContain('x-request-id')
    const { records } = (await call(service, 'POST /v1/agents/doors/query', { body: { type: 'latest' } }))
      .body
    expect(records).toMatchObject([{ payload: { open: true }, seq: 1 }])
    expect(await article.locator('.result pre').textContent()).toContain(records[0].content_hash)
  })

  it('escapes names in addresses, and shows the refusal', async () => {
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    const article = operation('getAgentHead')
    await article.locator('.try summary').first().click()
    await article.getByLabel('agent', { exact: true }).fill('north::door/?#')
    complaintsAllowed = 'status of 400'
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    expect(requests.at(-1)?.url()).toBe(`${service.url}/v1/agents/north%3A%3Adoor%2F%3F%23/head`)
    expect(await article.locator('.result pre').textContent()).toContain('validation_failed')
  })

  it('shows the content of records as text, even if it looks like HTML', async () => {
    const html = '<img src=x onerror=alert(1)>'
    await call(service, 'POST /v1/collections/html/records', { body: { data: { html } } })
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    const article = operation('postAgentQuery')
    await article.locator('.try summary').first().click()
    await article.getByLabel('agent', { exact: true }).fill('html')
    await article.getByLabel('Body', { exact: true }).fill('{"type":"latest"}')
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    expect(await article.locator('.result pre').textContent()).toContain(html)
    expect(await page.locator('article img').count()).toBe(0)
  })

  it('has an anchor for each error code to which the type of a problem refers', async () => {
    const { body } = await call(service, 'GET /v1/agents/unknown/head')
    expect(body).toMatchObject({ code: 'agent_not_found', type: '/docs#error-agent_not_found' })
    const ids = await page.locator('[id^="error-"]').evaluateAll((all) => all.map(({ id }) => id))
    expect(ids.sort()).toEqual(
      Object.keys(errorCatalogue)
        .map((code) => `error-${code}`)
        .sort(),
    )
    await page.goto(new URL(body.type, service.url).href)
    await page.locator('#error-agent_not_found').waitFor()
  })

  it('keeps the key in memory only', async () => {
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    const article = operation('getAgents')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    const storage = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    )
    expect(storage).toBe('[{},{},""]')
    await page.reload()
    expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')
  })

  it('shows a stream as it arrives, until it is stopped', async () => {
    await page.getByLabel('API key', { exact: true }).fill(testRootKey)
    const article = operation('getStream')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').getByText('event: caught_up').waitFor()
    await call(service, 'POST /v1/collections/live/records', { body: { data: { text: 'live' } } })
    await article.locator('.result pre').getByText('"text":"live"').waitFor()
    await article.getByRole('button', { name: 'Stop' }).click()
    await article.locator('.result').getByText('Stopped').waitFor()
    expect(await article.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true)
  })

  it('asks the user for a key when the server requires one and none was entered', async () => {
    const article = operation('getAgents')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.getByRole('button', { name: 'Enter an API key' }).click()
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('key')
    expect(requests.at(-1)?.url()).toMatch(/\/v1\/agents(\?|$)/)
    expect(requests.at(-1)?.headers()).not.toHaveProperty('authorization')
  })

  it('scrolls to the operation in the address', async () => {
    await page.goto('about:blank')
    await page.goto(`${service.url}/docs#getStrandProof`)
    await operation('getStrandProof').waitFor()
    await page.waitForFunction(() => {
      const { top } = document.querySelector('#getStrandProof')!.getBoundingClientRect()
      return top >= 0 && top < 300
    })
  })

  it('fits a phone: no element is wider than the screen, and a button opens the contents', async () => {
    await context.close()
    await open({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(await page.locator('nav').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Contents' }).click()
    await page.locator('nav a[href="#getAgents"]').click()
    expect(await page.locator('nav').isVisible()).toBe(false)
    expect(new URL(page.url()).hash).toBe('#getAgents')
  })

  it.each([
    [1440, 'light'],
    [360, 'dark'],
  ] as const)('passes axe and fits, %i pixels wide and %s', async (width, colorScheme) => {
    await page.setViewportSize({ width, height: 800 })
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    // axe would take minutes for all operations, so only some of each kind are opened.
    await page.getByLabel('Search operations').fill('records:write')
    const article = operation('postAgentRecords')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    expect(await axeFindings(page)).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width)
  })

  it('has the appearance that was chosen in the console, and one link back to it', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await page.getByLabel('Appearance').selectOption('Dark')
    expect(await ground()).toBe('rgb(11, 18, 15)')
    await page.getByRole('link', { name: 'Console', exact: true }).click()
    await page.getByLabel('Root key or API key').waitFor()
    expect(await ground()).toBe('rgb(11, 18, 15)')
  })

  it('can be read and used by keyboard only', async () => {
    await page.keyboard.press('/')
    await page.keyboard.type('healthz')
    const article = operation('getHealthz')
    const tabTo = async (wanted: Locator): Promise<void> => {
      for (let presses = 0; presses < 80; presses += 1) {
        if (await wanted.evaluate((element) => element === document.activeElement)) return
        await page.keyboard.press('Tab')
      }
      throw new Error('The Tab key does not reach the element')
    }
    await tabTo(article.locator('.try summary').first())
    await page.keyboard.press('Enter')
    await tabTo(article.getByRole('button', { name: 'Send' }))
    await page.keyboard.press('Enter')
    await article.locator('.result pre').waitFor()
    expect(await article.locator('.result > p').textContent()).toContain('200 OK')
  })

  it('is dark if the reader prefers it', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await ground()
    await page.emulateMedia({ colorScheme: 'dark' })
    expect([light, await ground()]).toEqual(['rgb(255, 255, 255)', 'rgb(11, 18, 15)'])
  })
})
