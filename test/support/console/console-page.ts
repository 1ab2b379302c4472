import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { testRootKey } from '../server/server.js'

/** The console in a browser profile of its own. */
export interface ConsolePage {
  page: Page
  context: BrowserContext
  /** Addresses that it asked for, `data:` and `blob:` aside. */
  asked: string[]
  /** Errors of its scripts, errors in the browser's console, and violations of its policy. */
  complaints: string[]
  /** Complaints that are expected contain this. */
  allow(text: string): void
}

/** How the console is opened. */
export interface ConsoleOpening {
  /** The part of the address behind `/console`. */
  at?: string
  options?: BrowserContextOptions
  /** Complaints that contain this are expected. */
  allowed?: string
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Opens the console of a server. */
export async function openConsole(
  browser: Browser,
  url: string,
  { at = '', options = {}, allowed: expected }: ConsoleOpening = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const page = await context.newPage()
  const asked: string[] = []
  const complaints: string[] = []
  const allowed = expected === undefined ? [] : [expected]
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url())) asked.push(request.url())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !allowed.some((one) => text.includes(one))) complaints.push(text)
  })
  await page.goto(`${url}/console${at}`)
  return { page, context, asked, complaints, allow: (text) => allowed.push(text) }
}

/** Signs in, and waits until the console says whose the key is. */
export async function signIn(page: Page, key: string = testRootKey): Promise<void> {
  await page.getByLabel('Root key or API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** Opens the console signed in, at a screen. */
export async function openSignedIn(
  browser: Browser,
  url: string,
  opening: ConsoleOpening & { key?: string } = {},
): Promise<ConsolePage> {
  const opened = await openConsole(browser, url, opening)
  await signIn(opened.page, opening.key)
  return opened
}

/** What axe finds wrong with the page, each with the places. The page's policy does not stop what the browser runs. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(axeSource)
  const results: AxeResults = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** The result of a check, once it is there. */
export async function verdict(page: Page): Promise<string> {
  const shown = page.getByRole('status').filter({ hasText: /^(Verified|Not verified)/ })
  await shown.waitFor()
  return (await shown.locator('.verdict-text').textContent()) ?? ''
}
