import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { sharedBrowser } from '../http/browser.js'
import { testRootKey } from '../server/server.js'

/** The console in a separate browser profile. */
export interface ConsolePage {
  page: Page
  context: BrowserContext
  /** The URLs of all requests, except `data:` and `blob:`. */
  requestedUrls: string[]
  /** Ignores later browser errors that contain this text. */
  allow(text: string): void
}

/** How the console is opened. */
export interface ConsoleOpening {
  /** The part of the address behind `/console`. */
  at?: string
  /**
   * Opens a separate profile with these options, possibly none. A test needs one for what lasts as long as
   * the profile: a clock, and routes and scripts of its context.
   */
  options?: BrowserContextOptions
  /** Browser errors that contain this text are ignored. */
  allowed?: string
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Opens the console of a server, and closes it at the end of the test. The test fails after errors of
 * scripts, errors in the browser's console, or violations of the page's policy.
 */
export async function openConsole(
  url: string,
  { at = '', options, allowed: expected }: ConsoleOpening = {},
): Promise<ConsolePage> {
  const { context, close } = await emptyProfile(options)
  const page = await context.newPage()
  const requestedUrls: string[] = []
  const browserErrors: string[] = []
  const allowed = expected === undefined ? [] : [expected]
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url())) requestedUrls.push(request.url())
  })
  const failed = (text: string) => browserErrors.push(`${text} (${page.url()})`)
  page.on('pageerror', (error) => failed(error.message))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && !allowed.some((one) => text.includes(one))) failed(text)
  })
  onTestFinished(async () => {
    await close()
    expect(browserErrors).toEqual([])
  })
  await page.goto(`${url}/console${at}`)
  return { page, context, requestedUrls, allow: (text) => allowed.push(text) }
}

let reused: BrowserContext | undefined
let isReusedFree = true

/**
 * A profile without stored data. Tests without options use the same profile, one after another. Its first
 * page stays open and keeps the process of the profile: starting one takes a fifth of a second.
 */
async function emptyProfile(
  options?: BrowserContextOptions,
): Promise<{ context: BrowserContext; close(): Promise<void> }> {
  const browser = await sharedBrowser()
  const viewport = { width: 1440, height: 900 }
  if (options !== undefined || !isReusedFree) {
    const context = await browser.newContext({ viewport, ...options })
    return { context, close: () => context.close() }
  }
  isReusedFree = false
  if (reused === undefined) {
    reused = await browser.newContext({ viewport })
    await reused.newPage()
  }
  const context = reused
  const close = async () => {
    for (const page of context.pages().slice(1)) await page.close()
    await context.setStorageState({ cookies: [], origins: [] })
    isReusedFree = true
  }
  return { context, close }
}

/** Signs in, and waits for the signed-in console. */
export async function signIn(page: Page, key: string = testRootKey): Promise<void> {
  await page.getByLabel('Root key or API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
}

/** Opens a screen of the console, signed in. */
export async function openSignedIn(
  url: string,
  opening: ConsoleOpening & { key?: string | undefined } = {},
): Promise<ConsolePage> {
  const opened = await openConsole(url, opening)
  await signIn(opened.page, opening.key)
  return opened
}

/** The rules of axe that depend on the theme. They take most of the time of a run. */
const ofColours = ['color-contrast', 'link-in-text-block']

/**
 * The violations that axe finds, with their elements. The page's policy does not apply to scripts of the
 * test.
 * @param only `colours` finds only what depends on the theme, `structure` only what does not
 * @param except a selector of parts of the page that are not checked
 */
export async function axeFindings(
  page: Page,
  only: 'colours' | 'structure' | 'all' = 'all',
  except?: string,
): Promise<string[]> {
  // Loading it takes as long as a run, so each document loads it once.
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axeSource)
  // Experimental in axe, but required by WCAG 2.5.3: who says what is shown must reach it.
  const rules = { 'label-content-name-mismatch': { enabled: true } }
  const withoutColours = Object.fromEntries(ofColours.map((rule) => [rule, { enabled: false }]))
  const chosen = {
    colours: { runOnly: ofColours },
    structure: { rules: { ...rules, ...withoutColours } },
    all: { rules },
  }[only]
  const options = JSON.stringify({ reporter: 'no-passes', selectors: false, ...chosen })
  const context = except === undefined ? 'document' : JSON.stringify({ exclude: [except] })
  const results: AxeResults = await page.evaluate(`axe.run(${context}, ${options})`)
  return results.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** Waits for the verdict of a check, and returns it. */
export async function verdict(page: Page): Promise<string> {
  const shown = page.getByRole('status').filter({ hasText: /^(Verified|Consistent|Not verified)/ })
  await shown.waitFor()
  return (await shown.locator('.verdict-text').textContent()) ?? ''
}
