import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn, signIn, verdict } from '../support/console/console-page.js'
import { makeMixedStrand } from '../support/console/strands.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer, testRootKey } from '../support/server/server.js'

const KILOBYTE = 1_000
const folder = join(import.meta.dirname, '../../dist/program/console')

describe.skipIf(noBrowser)('the console’s page', () => {
  let server: TestServer
  let browser: Browser

  beforeAll(async () => {
    server = await startServer()
    browser = await sharedBrowser()
    await makeMixedStrand(server, 'mixed')
  })

  afterAll(async () => {
    await server?.stop()
  })

  const settled: Record<string, (page: Page) => Promise<unknown>> = {
    '#/home': (page) => page.getByRole('link', { name: 'Record 1 of mixed', exact: true }).waitFor(),
    '#/account': (page) => page.getByRole('heading', { name: 'What it may do' }).waitFor(),
    '#/live': (page) => page.getByRole('status').getByText('Live', { exact: true }).waitFor(),
    '#/health': (page) => page.getByRole('rowheader', { name: 'Disk free' }).waitFor(),
    '#/start': (page) => page.getByText('From a program').click(),
    '#/agents': async (page) => {
      await page.getByRole('rowheader', { name: 'mixed' }).waitFor()
    },
    '#/agents/mixed': async (page) => {
      await page.getByRole('link', { name: 'Record 0', exact: true }).waitFor()
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('button', { name: 'Add a condition' }).click()
    },
    '#/agents/mixed/1': async (page) => {
      await page.getByRole('button', { name: 'Prove' }).click()
      await verdict(page)
    },
    '#/agents/mixed/live': async (page) => {
      await page.getByLabel('From record').fill('1')
      await page.getByRole('button', { name: 'Begin there' }).click()
      await page.getByRole('link', { name: 'Record 8', exact: true }).waitFor()
    },
    '#/agents/mixed/proof': async (page) => {
      await page.getByRole('button', { name: 'Verify', exact: true }).click()
      await verdict(page)
    },
    '#/agents/mixed/time': (page) => verdict(page),
    '#/agents/mixed/graph': (page) => page.getByText('No edge leads to this agent').waitFor(),
    '#/agents/mixed/agent': (page) => page.getByText('it takes effect at once').waitFor(),
    '#/agents/mixed/rules': (page) => page.getByText('No rule yet').waitFor(),
    '#/verify': (page) => page.getByRole('heading', { name: 'Verify' }).waitFor(),
    '#/nothing': (page) => page.getByText('There is no such screen').waitFor(),
  }

  // Colours do not depend on the width.
  it.each([
    [1440, 'light'],
    [360, 'dark'],
  ] as const)('is accessible by axe and fits, %i pixels wide and %s', async (width, colorScheme) => {
    const viewport = { width, height: 800 }
    const options = { viewport, colorScheme, reducedMotion: 'reduce' } as const
    const { page, context, complaints } = await openConsole(browser, server.url, { options })
    await page.getByText('The server is ready').waitFor()
    const findings = { 'sign-in': await axeFindings(page) }
    await signIn(page)
    for (const [at, settle] of Object.entries(settled)) {
      await page.goto(`${server.url}/console${at}`)
      await settle(page)
      Object.assign(findings, { [at]: await axeFindings(page) })
      expect([at, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([at, width])
    }
    await page.goto(`${server.url}/console#/agents`)
    await page.getByRole('button', { name: 'New agent' }).click()
    Object.assign(findings, { 'new agent': await axeFindings(page) })
    expect(Object.entries(findings).filter(([, found]) => found.length > 0)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  it('asks nothing of another host, and leaves the key in no address, history, referrer or lasting storage', async () => {
    const { page, context, asked, complaints } = await openSignedIn(browser, server.url)
    const referrers: string[] = []
    page.on('request', (request) => referrers.push(...(request.headers()['referer'] ?? [])))
    for (const [at, settle] of Object.entries(settled)) {
      await page.goto(`${server.url}/console${at}`)
      await settle(page)
    }
    const left = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, document.cookie, document.referrer, history.state]),
    )
    expect(left).not.toContain(testRootKey)
    expect(referrers).toEqual([])
    const session = await context.newCDPSession(page)
    const { entries } = await session.send('Page.getNavigationHistory')
    expect(entries.length).toBeGreaterThan(10)
    expect(JSON.stringify(entries)).not.toContain(testRootKey)
    expect(asked.length).toBeGreaterThan(20)
    expect(asked.filter((url) => new URL(url).origin !== server.url || url.includes(testRootKey))).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  it('is loaded by few requests and stays small', async () => {
    const { context, asked, page } = await openConsole(browser, server.url)
    await page.getByText('The server is ready').waitFor()
    const loaded = asked.map((url) => new URL(url).pathname).filter((path) => path.startsWith('/console'))
    expect(loaded.length).toBeLessThanOrEqual(4)
    const sizes = new Map(
      readdirSync(folder)
        .filter((name) => name.endsWith('.br'))
        .map((name) => [name, statSync(join(folder, name)).size]),
    )
    const sizeOf = (wanted: (name: string) => boolean): number =>
      [...sizes].reduce((sum, [name, size]) => (wanted(name) ? sum + size : sum), 0)
    // What it checks with is a file that the page loads as well.
    const isWorker = (name: string): boolean => /^check(-worker|s)-/.test(name)
    const isFirst = (name: string): boolean =>
      name === 'index.html.br' || loaded.includes(`/console/${name.replace(/\.br$/, '')}`)
    expect(sizeOf(isWorker)).toBeGreaterThan(0)
    expect(sizeOf(isWorker)).toBeLessThan(20 * KILOBYTE)
    expect(sizeOf(isFirst)).toBeGreaterThan(20 * KILOBYTE)
    expect(sizeOf(isFirst)).toBeLessThan(70 * KILOBYTE)
    // The verifier is saved, not run: the page is whole without it.
    const isSaved = (name: string): boolean => /^verify-\w+\.py\.br$/.test(name)
    expect(sizeOf(isSaved)).toBeGreaterThan(0)
    expect(sizeOf(isSaved)).toBeLessThan(10 * KILOBYTE)
    expect(sizeOf((name) => !isSaved(name))).toBeLessThan(135 * KILOBYTE)
    await context.close()
  })

  it('says what to do where the script of a screen is gone', async () => {
    const { page, context } = await openConsole(browser, server.url)
    await page.route(/verify-page-/, (found) => found.fulfill({ status: 404 }))
    await page.getByRole('link', { name: 'Verify', exact: true }).click()
    await page.getByText('This screen could not be loaded').waitFor()
    await page.unroute(/verify-page-/)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Verify' }).waitFor()
    await context.close()
  })

  it('takes its appearance from the system, or as it is chosen', async () => {
    const { page, context } = await openConsole(browser, server.url, { options: { colorScheme: 'dark' } })
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    expect(await ground()).toBe('rgb(11, 18, 15)')
    await page.getByLabel('Appearance').selectOption('Light')
    expect(await ground()).toBe('rgb(255, 255, 255)')
    await page.reload()
    await page.getByLabel('Appearance').waitFor()
    expect(await ground()).toBe('rgb(255, 255, 255)')
    await context.close()
  })

  it('moves nothing for people who want less motion', async () => {
    const moving = async (reducedMotion: 'reduce' | 'no-preference'): Promise<number> => {
      const options = { reducedMotion }
      const { page, context } = await openSignedIn(browser, server.url, { at: '#/agents/mixed/1', options })
      await page.getByRole('button', { name: 'Prove' }).click()
      await verdict(page)
      const count = await page.evaluate(
        () => document.getAnimations().filter(({ playState }) => playState === 'running').length,
      )
      await context.close()
      return count
    }
    expect(await moving('reduce')).toBe(0)
    expect(await moving('no-preference')).toBeGreaterThan(0)
  })

  it('is used by the keyboard alone: from the key to a proof and back', async () => {
    const { page, context, complaints } = await openConsole(browser, server.url)
    await page.getByText('The server is ready').waitFor()
    const focused = () =>
      page.evaluate(() => {
        const { activeElement } = document
        return activeElement?.getAttribute('aria-label') ?? activeElement?.textContent ?? ''
      })
    const tabTo = async (name: string): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        if ((await focused()) === name) return
        await page.keyboard.press('Tab')
      }
      throw new Error(`The key Tab does not lead to ${name}`)
    }
    await page.keyboard.type(testRootKey)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await tabTo('Agents')
    await page.keyboard.press('Enter')
    await page.getByRole('rowheader', { name: 'mixed' }).waitFor()
    await tabTo('mixed')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Record 1', exact: true }).waitFor()
    await tabTo('Record 1')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Prove' }).waitFor()
    await tabTo('Prove')
    await page.keyboard.press('Enter')
    expect(await verdict(page)).toContain('Verified: record 1 of mixed')
    for (let presses = 0; presses < 30; presses += 1) {
      await page.keyboard.press('Tab')
      const isOutside = await page.evaluate(
        () => document.activeElement !== document.body && document.activeElement?.closest('dialog') === null,
      )
      expect(isOutside).toBe(false)
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(focused).toBe('Record 1')
    await tabTo('Skip to the content')
    await page.keyboard.press('Enter')
    await tabTo('Records')
    for (const name of ['Live', 'Time', 'Proof']) {
      await page.keyboard.press('ArrowRight')
      await page.getByRole('tab', { name, exact: true, selected: true }).waitFor()
    }
    await page.getByRole('button', { name: 'Verify', exact: true }).waitFor()
    await expect.poll(focused).toBe('Proof')
    await tabTo('Verify')
    await page.keyboard.press('Enter')
    expect(await verdict(page)).toContain('Verified: all 9 records of mixed')
    expect(complaints).toEqual([])
    await context.close()
  })
})
