import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerMany } from '../support/auth/accounts.js'
import { openSignedIn, signIn, verdict } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

const TABS_MAX = 8
const row = 'tbody tr, .live-rows li'

describe.skipIf(noBrowser)('the console by keyboard', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
    await registerMany(server, ['ada@example.com'])
    await newAgent(server, 'weather', 'governed')
    const [hash] = await writeMany(
      server,
      'weather',
      Array.from({ length: 9 }, (_none, celsius) => ({ celsius })),
    )
    await call(server, `DELETE /v1/agents/weather/records/${hash}`)
    await scopedKey(server, ['records:read'])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string): Promise<Page> => {
    return (await openSignedIn(server.url, { at })).page
  }
  const focused = (page: Page): Promise<string> =>
    page.evaluate(
      () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '',
    )

  it.each(['home', 'agents', 'agents/weather', 'users', 'keys', 'proposals', 'audit', 'live?minutes=60'])(
    `leads from the top of the screen %s to its first row in ${TABS_MAX} presses of Tab`,
    async (screen) => {
      const page = await open(`#/${screen}`)
      await page.locator(row).first().waitFor()
      await page.getByRole('link', { name: 'Skip to content' }).focus()
      const passed = [await focused(page)]
      await page.keyboard.press('Enter')
      for (;;) {
        await page.keyboard.press('Tab')
        passed.push(await focused(page))
        const isRow = await page.evaluate((rows) => document.activeElement?.closest(rows) !== null, row)
        if (isRow || passed.length > TABS_MAX) break
      }
      expect(passed.length, passed.join(', ')).toBeLessThanOrEqual(TABS_MAX)
    },
  )

  it('moves with the arrow keys between the links of the bar, and between the buttons above a list', async () => {
    const page = await open('#/agents/weather')
    await page.getByRole('link', { name: 'Record 9', exact: true }).waitFor()
    await page.getByRole('link', { name: 'Agents', exact: true }).first().focus()
    await page.keyboard.press('ArrowLeft')
    expect(await focused(page)).toBe('Home')
    await page.keyboard.press('End')
    expect(await focused(page)).toBe('API')
    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toBe('Home')
    await page.getByRole('button', { name: 'New record' }).focus()
    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toBe('Filter')
    await page.keyboard.press('Enter')
    await page.getByLabel('Types').waitFor()
    await page.keyboard.press('ArrowRight')
    expect(await focused(page)).toContain('Columns')
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('leads to older and newer records with the arrow keys, and back to the list', async () => {
    const page = await open('#/agents/weather')
    await page.getByRole('link', { name: 'Record 8', exact: true }).click()
    const shown = (seq: number) => page.getByRole('dialog', { name: `Record ${seq}`, exact: true }).waitFor()
    await shown(8)
    await page.keyboard.press('ArrowLeft')
    await shown(7)
    await page.keyboard.press('ArrowLeft')
    await shown(6)
    await page.keyboard.press('ArrowRight')
    await shown(7)
    await page.reload()
    await shown(7)
    await page.keyboard.press('End')
    await page.goBack()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.goto(`${server.url}/console#/agents/weather/0`)
    await shown(0)
    await page.keyboard.press('ArrowLeft')
    await shown(0)
    await page.keyboard.press('ArrowRight')
    await shown(1)
  })

  it('focuses the verdict after a proof', async () => {
    const page = await open('#/agents/weather/3')
    await page.getByRole('button', { name: 'Prove' }).click()
    const text = await verdict(page)
    expect(await focused(page)).toContain(text)
    await page.goto(`${server.url}/console#/agents/weather/proof`)
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    const ofStrand = await verdict(page)
    expect(await focused(page)).toContain(ofStrand)
  })

  it('keeps unsaved rules while other screens are shown, and asks before the page is left', async () => {
    const page = await open('#/agents/weather/rules')
    const text = page.getByRole('textbox', { name: 'Rules as JSON' })
    await text.fill('[{"actions":["read"],"conditions":[]}]')
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('tab', { name: 'Records', exact: true }).click()
    await page.getByRole('link', { name: 'Record 9', exact: true }).waitFor()
    await page.getByRole('link', { name: 'Audit', exact: true }).click()
    await page.getByRole('heading', { name: 'Audit', exact: true }).waitFor()
    await page.goBack()
    await page.getByRole('tab', { name: 'Rules', exact: true }).click()
    await page.getByText('Unsaved changes').waitFor()
    expect(await text.inputValue()).toContain('"read"')
    const other = await page.context().newPage()
    await other.goto(`${server.url}/console#/log`)
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.close()
    await page.getByText('Signed out in another tab').waitFor()
    await signIn(page)
    await page.getByText('Unsaved changes').waitFor()
    const asked: string[] = []
    page.on('dialog', (dialog) => {
      asked.push(dialog.type())
      void dialog.dismiss()
    })
    await page.close({ runBeforeUnload: true })
    await expect.poll(() => asked).toEqual(['beforeunload'])
    await page.getByRole('button', { name: 'Discard changes' }).click()
    await page.getByText('Unsaved changes').waitFor({ state: 'detached' })
    await page.reload()
    await page.getByRole('button', { name: 'Save…' }).waitFor()
    expect(asked).toHaveLength(1)
    await text.fill('[{"actions":["read"],"conditions":[]}]')
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(page, (await scopedKey(server, ['records:read', 'agents:admin'])).key)
    await page.getByRole('button', { name: 'Save…' }).waitFor()
    expect(await page.getByText('Unsaved changes').count()).toBe(0)
  })
})
