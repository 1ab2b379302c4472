import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openApiDocument, operationIdOf } from '../../src/http/openapi.js'
import { docsPage, docsPagePolicy } from '../../src/routes/docs-page.js'
import { allRoutes } from '../../src/routes/routes.js'

const CHROMIUM = '/usr/bin/chromium'
const leftOut = !existsSync(CHROMIUM) && process.env['CI'] !== 'true'

// Left out where there is no browser, but never in silence, and never where the whole suite is promised.
if (leftOut) console.warn(`Skipped: no browser at ${CHROMIUM}`)

const routes = allRoutes('default')
const ROOT_KEY = 'root-key-of-this-test-0123456789abcdef'

/** What the page sent when somebody tried an operation. */
interface Sent {
  method: string | undefined
  path: string | undefined
  authorization: string | undefined
  body: string
}

/** The page and its document as the server gives them; everything else is written down and answered. */
async function startDocsServer(sent: Sent[]): Promise<{ url: string; stop(): void }> {
  const server = createServer(async (request, response) => {
    if (request.url === '/docs') {
      const headers = {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': docsPagePolicy,
      }
      return response.writeHead(200, headers).end(docsPage)
    }
    if (request.url === '/openapi.json') {
      response.writeHead(200, { 'content-type': 'application/json' })
      return response.end(JSON.stringify(openApiDocument(routes, '1.2.3')))
    }
    if (request.url === '/v1/stream') {
      // One event, and then silence: a stream does not end by itself.
      return response.writeHead(200, { 'content-type': 'text/event-stream' }).write('event: caught_up\n\n')
    }
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const { authorization } = request.headers
    sent.push({ method: request.method, path: request.url, authorization, body })
    const status = authorization === `Bearer ${ROOT_KEY}` ? 201 : 401
    // A name that would run as a script if the page read answers as HTML.
    const answer = { seq: 7, agent: '<img src=x onerror=alert(1)>' }
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'request-1' })
    return response.end(JSON.stringify(answer))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('Expected a TCP address')
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${address.port}`, stop }
}

describe.skipIf(leftOut)('the documentation page', () => {
  const sent: Sent[] = []
  let service: Awaited<ReturnType<typeof startDocsServer>>
  let browser: Browser
  let context: BrowserContext
  let page: Page
  let asked: string[]
  let complaints: string[]

  beforeAll(async () => {
    service = await startDocsServer(sent)
    const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking']
    browser = await chromium.launch({ executablePath: CHROMIUM, args })
  })

  afterAll(async () => {
    await browser?.close()
    service?.stop()
  })

  const open = async (options: Parameters<Browser['newContext']>[0]) => {
    asked = []
    complaints = []
    sent.length = 0
    context = await browser.newContext(options)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: service.url })
    page = await context.newPage()
    page.on('request', (request) => asked.push(request.url()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      // The browser reports each refused request here; a refusal is what some tests ask for.
      if (message.type() === 'error' && !message.text().includes('status of 401'))
        complaints.push(message.text())
    })
    await page.goto(`${service.url}/docs`)
    await page.locator('article').first().waitFor()
  }

  beforeEach(() => open({ viewport: { width: 1440, height: 900 } }))

  afterEach(async () => {
    await context.close()
    expect(complaints).toEqual([])
  })

  const operation = (id: string) => page.locator(`article#${id}`)

  it('shows every operation with its method and path, in the contents and in the text', async () => {
    expect(await page.locator('article').count()).toBe(routes.length)
    for (const route of routes) {
      const article = operation(operationIdOf(route))
      const signature = await article.locator('.signature').textContent()
      expect(signature).toContain(route.path.replaceAll(/:(\w+)/g, '{$1}'))
      expect(await article.locator('h3').textContent()).toBe(route.docs.summary)
      expect(await page.locator(`nav a[href="#${operationIdOf(route)}"]`).count()).toBe(1)
    }
  })

  it('asks nothing of another host and runs under its own policy', () => {
    expect(
      asked.filter((url) => !url.startsWith('data:')).map((url) => url.replace(service.url, '')),
    ).toEqual(['/docs', '/openapi.json'])
  })

  it('resolves references: members of members stand in the table of the answer', async () => {
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

  it('finds operations by the words typed behind /, and shows all again on Escape', async () => {
    await page.keyboard.press('/')
    await page.keyboard.type('restore')
    expect(await page.locator('article:visible').count()).toBe(1)
    expect(await page.locator('nav a:visible').count()).toBe(1)
    await page.keyboard.type(' nothing of this kind')
    await page.getByText('No operation fits').waitFor()
    await page.keyboard.press('Escape')
    expect(await page.locator('article:visible').count()).toBe(routes.length)
  })

  it('copies a curl line that carries no key', async () => {
    await page.getByLabel('API key', { exact: true }).fill(ROOT_KEY)
    await operation('postAgentRecords').getByRole('button', { name: 'Copy' }).first().click()
    const copied = await page.evaluate(() => navigator.clipboard.readText())
    expect(copied).toContain(`curl -X POST '${service.url}/v1/agents/sensors/records'`)
    expect(copied).toContain('-H "Authorization: Bearer $STRANDFAST_KEY"')
    expect(copied).not.toContain(ROOT_KEY)
  })

  it('sends what stands in the form, with the key, and shows status, headers and body as text', async () => {
    await page.getByLabel('API key', { exact: true }).fill(ROOT_KEY)
    const article = operation('postAgentRecords')
    await article.locator('.try summary').first().click()
    await article.getByLabel('agent', { exact: true }).fill('north::door')
    await article.getByLabel('Idempotency-Key').fill('once')
    await article.getByLabel('Body', { exact: true }).fill('{"data":{"open":true}}')
    expect(await article.locator('pre').first().textContent()).toContain("-H 'Idempotency-Key: once'")
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    expect(sent).toEqual([
      {
        method: 'POST',
        path: '/v1/agents/north%3A%3Adoor/records',
        authorization: `Bearer ${ROOT_KEY}`,
        body: '{"data":{"open":true}}',
      },
    ])
    expect(await article.locator('.result > p').textContent()).toContain('201 Created')
    expect(await article.locator('.result dl').textContent()).toContain('request-1')
    expect(await article.locator('.result pre').textContent()).toContain('<img src=x onerror=alert(1)>')
    expect(await page.locator('article img').count()).toBe(0)
  })

  it('keeps the key in memory only', async () => {
    await page.getByLabel('API key', { exact: true }).fill(ROOT_KEY)
    const article = operation('getAgents')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').waitFor()
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
    )
    expect(kept).toBe('[{},{},""]')
    await page.reload()
    expect(await page.getByLabel('API key', { exact: true }).inputValue()).toBe('')
  })

  it('shows a stream while it comes, until it is stopped', async () => {
    const article = operation('getStream')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result pre').getByText('event: caught_up').waitFor()
    await article.getByRole('button', { name: 'Stop' }).click()
    await article.locator('.result').getByText('Stopped').waitFor()
    expect(await article.getByRole('button', { name: 'Send' }).isEnabled()).toBe(true)
  })

  it('asks for a key when the server wants one and none was typed', async () => {
    const article = operation('getAgents')
    await article.locator('.try summary').first().click()
    await article.getByRole('button', { name: 'Send' }).click()
    await article.getByRole('button', { name: 'Type an API key' }).click()
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('key')
    expect(sent).toMatchObject([{ authorization: undefined }])
  })

  it('goes to the operation that the address names', async () => {
    await page.goto('about:blank')
    await page.goto(`${service.url}/docs#getStrandProof`)
    await operation('getStrandProof').waitFor()
    await page.waitForFunction(() => {
      const { top } = document.querySelector('#getStrandProof')!.getBoundingClientRect()
      return top >= 0 && top < 300
    })
  })

  it('fits a phone: nothing is wider than the screen, and the contents open by a button', async () => {
    await context.close()
    await open({ viewport: { width: 390, height: 844 }, colorScheme: 'dark' })
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    expect(await page.locator('nav').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Contents' }).click()
    await page.locator('nav a[href="#getAgents"]').click()
    expect(await page.locator('nav').isVisible()).toBe(false)
    expect(new URL(page.url()).hash).toBe('#getAgents')
  })

  it('is dark where the reader prefers it', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    await page.emulateMedia({ colorScheme: 'light' })
    const light = await ground()
    await page.emulateMedia({ colorScheme: 'dark' })
    expect([light, await ground()]).toEqual(['rgb(255, 255, 255)', 'rgb(11, 18, 15)'])
  })
})
