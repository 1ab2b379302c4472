import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { makeMixedStrand } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

/** Types into the first field of a selector as soon as it is in the document, before it is painted. */
const typeEarly = async (page: Page, selector: string, text: string): Promise<void> =>
  page.evaluate(
    (typed) => {
      const observer = new MutationObserver(() => {
        const field = document.querySelector<HTMLInputElement>(typed.selector)
        if (field === null) return
        observer.disconnect()
        field.value = typed.text
        field.dispatchEvent(new Event('input', { bubbles: true }))
      })
      observer.observe(document, { childList: true, subtree: true })
    },
    { selector, text },
  )

/** Waits until the page has been painted and what it does after that is done. */
const painted = async (page: Page): Promise<void> =>
  page.evaluate(
    async () => new Promise<void>((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50))),
  )

describe.skipIf(noBrowser)('what is typed before a form is painted', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    await makeMixedStrand(server, 'mixed')
    const rule = { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }
    await call(server, 'PUT /v1/agents/mixed/policies', { body: { policies: [rule] } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const time = 'input[type=datetime-local]'
  const from = '2020-01-01T00:00:00Z'
  it.each([
    ['records', `#/agents/mixed?from=${from}`, `form[aria-label=Filter] ${time}`],
    ['a graph', `#/agents/mixed/graph?at=${from}`, `form.tools ${time}`],
    ['the audit', `#/audit?period=own&from=${from}`, `.filter ${time}`],
  ])('stays in the filter of %s, and applies', async (_, screen, selector) => {
    const { page } = await openSignedIn(server.url, { at: '#/home' })
    await typeEarly(page, selector, '2021-02-03T12:05:06')
    await page.evaluate((hash) => (location.hash = hash), screen)
    const field = page.locator(selector).first()
    await field.waitFor()
    await painted(page)
    expect(await field.inputValue()).toBe('2021-02-03T12:05:06')
    await field.press('Enter')
    await page.waitForURL(/=2021-02-03T/)
  })

  it('stays in a rule', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/home' })
    await typeEarly(page, '.rule .field input', 'note')
    await page.evaluate(() => (location.hash = '#/agents/mixed/rules'))
    await page.locator('.rule').waitFor()
    await painted(page)
    expect(await page.locator('.rule .field input').inputValue()).toBe('note')
  })

  it('stays in the filter of records when columns are chosen', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/agents/mixed' })
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Types').fill('reading')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'celsius' }).click()
    await page.getByRole('columnheader', { name: 'celsius' }).waitFor()
    await painted(page)
    expect(await page.getByLabel('Types').inputValue()).toBe('reading')
  })
})
