import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { faultsInAllThemes, layoutFaults } from '../support/console/everywhere.js'
import { makeRealData, realData } from '../support/console/real-data.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

const { busy, long, organism, user, userOfOrganism } = realData
const named = encodeURIComponent

/** The screens, and what to wait for or to open on each. */
const screens: Record<string, (page: Page) => Promise<unknown>> = {
  '#/home': (page) =>
    page.getByRole('list', { name: 'Last records' }).getByRole('listitem').first().waitFor(),
  '#/account': (page) => page.getByRole('heading', { name: 'Permissions' }).waitFor(),
  '#/start': (page) => page.getByText('From a program').click(),
  '#/agents': (page) => page.getByRole('rowheader', { name: busy }).or(rows(page)).first().waitFor(),
  [`#/agents/${busy}`]: async (page) => {
    await rows(page).first().waitFor()
    await page.getByText('Columns').click()
    for (const name of ['note', 'celsius']) await page.getByRole('button', { name, exact: true }).click()
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByRole('button', { name: 'Add condition' }).click()
  },
  [`#/agents/${busy}/1101`]: (page) => page.getByRole('button', { name: 'Prove' }).waitFor(),
  [`#/agents/${busy}/1190`]: async (page) => {
    await page.getByRole('button', { name: 'Prove' }).click()
    await verdict(page)
  },
  [`#/agents/${busy}/live`]: async (page) => {
    await page.getByLabel('From record').fill('1100')
    await page.getByRole('button', { name: 'Start there' }).click()
    await recordLink(page, 1_150).waitFor()
  },
  [`#/agents/${busy}/time`]: (page) => verdict(page),
  [`#/agents/${busy}/proof`]: async (page) => {
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await verdict(page)
  },
  [`#/agents/${busy}/graph`]: (page) => rows(page).first().waitFor(),
  [`#/agents/${busy}/rules`]: (page) => page.getByRole('group', { name: 'Rule 4: users can' }).waitFor(),
  '#/agents/zone-0.free/rules': (page) => page.getByText('No rules yet').waitFor(),
  [`#/agents/${busy}/agent`]: (page) => page.getByText('the change takes effect immediately').waitFor(),
  [`#/agents/${long}`]: (page) => recordLink(page, 1).or(rows(page)).first().waitFor(),
  [`#/agents/${long}/rules`]: (page) => page.getByText('not in force yet').waitFor(),
  [`#/agents/${named(`${organism}::${realData.member}`)}`]: (page) => recordLink(page, 0).waitFor(),
  '#/live': (page) => page.getByRole('status').getByText('Live', { exact: true }).waitFor(),
  '#/proposals': (page) => rows(page).first().waitFor(),
  '#/proposals/decided': (page) => rows(page).first().waitFor(),
  '#/users': (page) => rows(page).first().waitFor(),
  [`#/users/${named(user)}`]: async (page) => {
    await page.getByRole('button', { name: 'Unlock' }).waitFor()
    await page.getByRole('button', { name: 'Verify these' }).click()
    await verdict(page)
  },
  [`#/users/${organism}/${named(userOfOrganism)}`]: (page) => rows(page).first().waitFor(),
  '#/audit': (page) => page.getByRole('img', { name: /^\d+ failures?/ }).waitFor(),
  '#/audit/server%3A%3Aaudit': (page) => rows(page).first().waitFor(),
  '#/keys': (page) => rows(page).first().waitFor(),
  '#/log': (page) => page.getByRole('heading', { name: 'Log', exact: true }).waitFor(),
  '#/health': (page) => page.getByRole('rowheader', { name: 'Free disk space' }).waitFor(),
  '#/verify': (page) => page.getByRole('heading', { name: 'Verify' }).waitFor(),
  '#/nothing': (page) => page.getByText('Page not found').waitFor(),
}

const rows = (page: Page) => page.locator('main').getByRole('rowheader')
const recordLink = (page: Page, seq: number) =>
  page.getByRole('link', { name: `Record ${seq.toLocaleString('en')}`, exact: true })

describe.skipIf(noBrowser)('the console with data that is long, foreign and many', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer({ env: { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '86400' } })
    await makeRealData(server)
  })

  afterAll(async () => {
    await server?.stop()
  })

  it('is accessible by axe and fits on every screen, in both themes, on desktop and phone', async () => {
    const { page } = await openSignedIn(server.url)
    const faults: Record<string, string[]> = {}
    for (const [at, wait] of Object.entries(screens)) {
      await page.setViewportSize({ width: 1_440, height: 800 })
      await page.goto(`${server.url}/console${at}`)
      await wait(page)
      faults[at] = await faultsInAllThemes(page)
    }
    expect(Object.entries(faults).filter(([, found]) => found.length > 0)).toEqual([])
  })

  it('keeps the bar on one line and every screen within the page for keys that are limited', async () => {
    const keys: { scopes: string[]; agents?: string[]; ats: string[] }[] = [
      { scopes: ['ingest'], ats: ['#/home'] },
      { scopes: ['records:read'], ats: ['#/home', '#/agents', `#/agents/${busy}`] },
      {
        scopes: ['records:read', 'proposals:decide', 'admin:organisms'],
        agents: [long, busy, 'fleet.*'],
        ats: ['#/home', '#/account', '#/proposals', `#/agents/${long}`],
      },
      { scopes: ['admin:*'], ats: ['#/home', '#/keys', '#/users'] },
    ]
    const faults: string[] = []
    for (const { scopes, agents = [], ats } of keys) {
      const body = { name: realData.key.slice(1), scopes, agents }
      const { key } = (await call(server, 'POST /v1/admin/api-keys', { body })).body
      const { page } = await openSignedIn(server.url, { key })
      for (const at of ats) {
        await page.goto(`${server.url}/console${at}`)
        if (scopes.includes('ingest')) await page.getByText('No records or proposals to show').waitFor()
        else await screens[at]?.(page)
        for (const width of [1_440, 1_280, 1_024, 390]) {
          await page.setViewportSize({ width, height: 800 })
          faults.push(...(await layoutFaults(page)).map((fault) => `${scopes.join(' ')} ${at} ${fault}`))
        }
      }
    }
    expect(faults).toEqual([])
  })

  it('shows whole e-mails at 1,024 pixels, no button over a heading, and the appearance on a phone', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/users' })
    await page.setViewportSize({ width: 1_024, height: 800 })
    const email = rows(page).filter({ hasText: 'person.10@' })
    await email.waitFor()
    expect(await email.evaluate((cell) => cell.scrollWidth - cell.clientWidth)).toBe(0)
    await page.goto(`${server.url}/console#/keys`)
    await rows(page).first().waitFor()
    await page.getByRole('button', { name: 'Expires' }).click()
    expect(await page.locator('th.action').evaluate((head) => getComputedStyle(head).position)).toBe('static')
    await page.setViewportSize({ width: 390, height: 800 })
    const select = page.getByLabel('Appearance')
    const widths = await select.evaluate((box) => {
      const { width } = box.getBoundingClientRect()
      box.style.width = 'max-content'
      return [width, box.getBoundingClientRect().width]
    })
    expect(widths[0]).toBeGreaterThanOrEqual(widths[1] ?? Infinity)
  })

  it('shows the whole of a text that is cut on hover, and a long text of a body on request', async () => {
    const { page } = await openSignedIn(server.url, { at: `#/agents/${busy}` })
    const longType = `${'type.of-a_record/'.repeat(4)}`.slice(0, 64)
    await rows(page).first().waitFor()
    const row = page.getByRole('row').filter({ hasText: longType }).first()
    const box = await row.getByRole('cell', { name: longType }).boundingBox()
    await page.mouse.move((box?.x ?? 0) + 20, (box?.y ?? 0) + 10)
    await expect.poll(() => row.getByRole('link').first().getAttribute('title')).toBe(longType)
    await page.goto(`${server.url}/console#/agents/${busy}/1182`)
    const note = page.locator('.tree li', { hasText: 'note: ' }).last()
    await note.getByRole('button', { name: 'Show all 10,000 characters' }).click()
    expect(await note.locator('code').textContent()).toBe(JSON.stringify('x'.repeat(10_000)))
    await note.getByRole('button', { name: 'Show less' }).click()
    expect(((await note.locator('code').textContent()) ?? '').length).toBeLessThan(300)
  })

  it('shows no text of a record that reorders the text around it', async () => {
    const { page } = await openSignedIn(server.url)
    for (const at of ['/1163', '?page=1163&column=note', '/live?from=1150&pretty=on']) {
      await page.goto(`${server.url}/console#/agents/${busy}${at}`)
      const text = () => page.locator('main').textContent()
      await expect.poll(text).toContain('a\\u202ereversed\\u202c')
      expect(await text()).not.toMatch(/\p{Bidi_Control}/u)
    }
  })

  it('says of how many agents it counts the proposals of a limited key', async () => {
    const body = { name: 'limited', scopes: ['records:read', 'proposals:decide'], agents: [long, 'fleet.*'] }
    const { key } = (await call(server, 'POST /v1/admin/api-keys', { body })).body
    const { page } = await openSignedIn(server.url, { key })
    const tile = page.getByRole('list', { name: 'Metrics' }).getByRole('link', { name: 'Pending proposals' })
    await tile.getByText('of the 20 agents written last').waitFor()
    expect(await tile.locator('.tile-value').textContent()).toMatch(/^[0-9]+$/)
  })

  it('finds what contains a text in any script, and nothing by a text that no name contains', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/agents' })
    await page.getByLabel('Name contains').fill('車間')
    await page.getByText('No agents match “車間”').waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('車間')
    await page.getByRole('option', { name: '車間閘道' }).waitFor()
    await page.keyboard.press('Escape')
    for (const [text, shown] of [
      ['x'.repeat(300), 'x'.repeat(300)],
      ['\u202e', '\\u202e'],
      ['¿../#?', '¿../#?'],
    ] as const) {
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').getByRole('combobox').fill(text)
      await page.getByText(`No results for “${shown}”`).waitFor()
      await page.keyboard.press('Escape')
    }
  })

  it('is accessible by axe and fits in its dialogs', async () => {
    const { page } = await openSignedIn(server.url)
    const faults: Record<string, string[]> = {}
    const dialogs: [at: string, button: string, search?: string][] = [
      ['#/agents', 'New agent'],
      [`#/agents/${busy}`, 'New record'],
      [`#/agents/${long}`, 'Export'],
      ['#/keys', 'New key'],
      ['#/keys', `Delete ${realData.key}`, realData.key],
      [`#/agents/${busy}/1000`, 'Erase'],
    ]
    for (const [at, button, search] of dialogs) {
      await page.setViewportSize({ width: 1_440, height: 800 })
      await page.goto(`${server.url}/console${at}`)
      if (search !== undefined) await page.getByRole('searchbox').fill(search)
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('dialog').last().getByRole('heading').first().waitFor()
      faults[`${at} ${button}`] = await faultsInAllThemes(page)
      await page.keyboard.press('Escape')
    }
    const { body } = await call(server, `GET /v1/proposals?agent=${long}&state=proposed`)
    await page.goto(`${server.url}/console#/proposals/${named(body.proposals[0].proposal_id)}`)
    await page.getByRole('button', { name: 'Approve' }).waitFor()
    faults['a proposal'] = await faultsInAllThemes(page)
    expect(Object.entries(faults).filter(([, found]) => found.length > 0)).toEqual([])
  })
})
