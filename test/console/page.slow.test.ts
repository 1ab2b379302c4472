import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole, openSignedIn, verdict } from '../support/console/console-page.js'
import { makeMixedStrand } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer, testRootKey } from '../support/server/server.js'

const KILOBYTE = 1_000
const folder = join(import.meta.dirname, '../../dist/program/console')

describe.skipIf(noBrowser)('the console’s page', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    await makeMixedStrand(server, 'mixed')
  })

  afterAll(async () => {
    await server?.stop()
  })

  const waitFor: Record<string, (page: Page) => Promise<unknown>> = {
    '#/home': (page) => page.getByRole('link', { name: 'Record 1 of mixed', exact: true }).waitFor(),
    '#/account': (page) => page.getByRole('heading', { name: 'Permissions' }).waitFor(),
    '#/live': (page) => page.getByRole('status').getByText('Live', { exact: true }).waitFor(),
    '#/health': (page) => page.getByRole('rowheader', { name: 'Free disk space' }).waitFor(),
    '#/start': (page) => page.getByText('From a program').click(),
    '#/agents': async (page) => {
      await page.getByRole('rowheader', { name: 'mixed' }).waitFor()
    },
    '#/agents/mixed': async (page) => {
      await page.getByRole('link', { name: 'Record 0', exact: true }).waitFor()
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('button', { name: 'Add condition' }).click()
    },
    '#/agents/mixed/1': async (page) => {
      await page.getByRole('button', { name: 'Prove' }).click()
      await verdict(page)
    },
    '#/agents/mixed/live': async (page) => {
      await page.getByLabel('From record').fill('1')
      await page.getByRole('button', { name: 'Start there' }).click()
      await page.getByRole('link', { name: 'Record 8', exact: true }).waitFor()
    },
    '#/agents/mixed/proof': async (page) => {
      await page.getByRole('button', { name: 'Verify', exact: true }).click()
      await verdict(page)
    },
    '#/agents/mixed/time': (page) => verdict(page),
    '#/agents/mixed/graph': (page) => page.getByText('No incoming edges').waitFor(),
    '#/agents/mixed/agent': (page) => page.getByText('the change takes effect immediately').waitFor(),
    '#/agents/mixed/rules': (page) => page.getByText('No rules yet').waitFor(),
    '#/verify': (page) => page.getByRole('heading', { name: 'Verify' }).waitFor(),
    '#/nothing': (page) => page.getByText('Page not found').waitFor(),
  }

  it('requests nothing from another host, and leaves the key in no address, history, referrer or localStorage', async () => {
    const { page, context, requestedUrls } = await openSignedIn(server.url)
    const referrers: string[] = []
    page.on('request', (request) => referrers.push(...(request.headers()['referer'] ?? [])))
    for (const [at, wait] of Object.entries(waitFor)) {
      await page.goto(`${server.url}/console${at}`)
      await wait(page)
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
    expect(requestedUrls.length).toBeGreaterThan(20)
    expect(
      requestedUrls.filter((url) => new URL(url).origin !== server.url || url.includes(testRootKey)),
    ).toEqual([])
  })

  it('loads with few requests and stays small', async () => {
    const { requestedUrls, page } = await openConsole(server.url)
    await page.getByText('The server is ready').waitFor()
    const loaded = requestedUrls
      .map((url) => new URL(url).pathname)
      .filter((path) => path.startsWith('/console'))
    expect(loaded.length).toBeLessThanOrEqual(4)
    const sizes = new Map(
      readdirSync(folder)
        .filter((name) => name.endsWith('.br'))
        .map((name) => [name, statSync(join(folder, name)).size]),
    )
    const sizeOf = (wanted: (name: string) => boolean): number =>
      [...sizes].reduce((sum, [name, size]) => (wanted(name) ? sum + size : sum), 0)
    // The page loads the chunk with the checks as well.
    const isWorker = (name: string): boolean => /^check(-worker|s)-/.test(name)
    const isFirst = (name: string): boolean =>
      name === 'index.html.br' || loaded.includes(`/console/${name.replace(/\.br$/, '')}`)
    expect(sizeOf(isWorker)).toBeGreaterThan(0)
    expect(sizeOf(isWorker)).toBeLessThan(20 * KILOBYTE)
    expect(sizeOf(isFirst)).toBeGreaterThan(20 * KILOBYTE)
    expect(sizeOf(isFirst)).toBeLessThan(71 * KILOBYTE)
    // verify.py and the licenses are only downloaded, so they do not count as parts of the page.
    const isSaved = (name: string): boolean => /^(verify-\w+\.py|licenses-\w+\.txt)\.br$/.test(name)
    expect(sizeOf(isSaved)).toBeGreaterThan(0)
    expect(sizeOf(isSaved)).toBeLessThan(12 * KILOBYTE)
    expect(sizeOf((name) => !isSaved(name))).toBeLessThan(150 * KILOBYTE)
  })

  it('offers to retry if the script of a screen cannot be loaded', async () => {
    const { page } = await openConsole(server.url, { allowed: 'status of 404' })
    await page.route(/verify-page-/, (found) => found.fulfill({ status: 404 }))
    await page.getByRole('link', { name: 'Verify', exact: true }).click()
    await page.getByText('This screen could not be loaded').waitFor()
    await page.unroute(/verify-page-/)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Verify' }).waitFor()
  })

  it('follows the appearance of the system, or the chosen one', async () => {
    const { page } = await openConsole(server.url, { options: { colorScheme: 'dark' } })
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    expect(await ground()).toBe('rgb(11, 18, 15)')
    await page.getByLabel('Appearance').selectOption('Light')
    expect(await ground()).toBe('rgb(255, 255, 255)')
    await page.reload()
    await page.getByLabel('Appearance').waitFor()
    expect(await ground()).toBe('rgb(255, 255, 255)')
  })

  it('has no animations if the user prefers reduced motion', async () => {
    const moving = async (reducedMotion: 'reduce' | 'no-preference'): Promise<number> => {
      const options = { reducedMotion }
      const { page, context } = await openSignedIn(server.url, { at: '#/agents/mixed/1', options })
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

  it('works with the keyboard alone: from the sign-in to a proof and back', async () => {
    const { page } = await openConsole(server.url)
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
    await tabTo('Home')
    await page.keyboard.press('ArrowRight')
    expect(await focused()).toBe('Agents')
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
    expect(await verdict(page)).toContain('Consistent; the signer is not known to you: record 1 of mixed')
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
    await tabTo('Skip to content')
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
    expect(await verdict(page)).toContain(
      'Consistent; the signer is not known to you: all 8 records and the genesis of mixed',
    )
  })
})
