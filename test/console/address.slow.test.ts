import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerMany } from '../support/auth/accounts.js'
import { openSignedIn } from '../support/console/console-page.js'
import { writeMany } from '../support/console/strands.js'
import { createKeyAs, newAgent } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

/** Everything that a screen shows: its texts, what its fields contain, and which buttons are pressed. */
function shown(): string[] {
  const main = document.querySelector<HTMLElement>('#main')
  const fields = main?.querySelectorAll<HTMLInputElement>('input, select, textarea') ?? []
  const pressed = main?.querySelectorAll('[aria-pressed]') ?? []
  return [
    ...(main?.innerText.split(/\n+/) ?? []),
    ...[...fields].map(({ value, checked }) => `${value} ${checked}`),
    ...[...pressed]
      .filter((button) => button.checkVisibility())
      .map((button) => `${button.textContent} ${button.getAttribute('aria-pressed')}`),
  ]
}

/** Opens one address after another, as soon as the one before is shown. @returns the first one that is not */
async function firstBroken(addresses: readonly string[]): Promise<string | undefined> {
  for (const address of addresses) {
    location.assign(`#/${address}`)
    let frames = 0
    do {
      await new Promise(requestAnimationFrame)
      frames += 1
      if (frames > 1_000) return address
    } while (document.querySelector('#main h1') === null || document.querySelector('#main .loading') !== null)
  }
  return undefined
}

/** Screens that read values of the address. */
const screens =
  'live agents proposals keys users audit agents/weather agents/weather/0 agents/weather/live ' +
  'agents/weather/time agents/weather/graph agents/weather/rules users/ada@example.com ' +
  'traces/4bf92f3577b34da6a3ce929d0e0e4736'
/** Screens that a part of their address names. */
const named = 'live agents audit users users/acme keys proposals traces'
const names =
  'action agent at begins changed column contains event field from in list minutes order out outcome page ' +
  'period prefix pretty raw sort steps system to type types user where'
const hostile = [
  '',
  '1e12',
  '-1',
  '999999999999999',
  '+275760-09-13T00:00:00.000Z',
  '-271821-04-20T00:00:00.000Z',
  '3 +275760-09-13T00:00:00.000Z',
  '__proto__',
  'a eq:JSON {"',
  '%ff',
  '~\u0000\u{1f642},,'.repeat(9),
]

describe.skipIf(noBrowser)('the address of a page of the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer()
    await registerMany(server, ['ada@example.com', 'bea@example.com', 'bert@example.com'])
    for (let number = 0; number < 60; number += 1)
      await newAgent(server, `fleet-${String(number).padStart(2, '0')}`)
    await writeMany(
      server,
      'weather',
      Array.from({ length: 160 }, (_none, celsius) => ({ celsius, door: { name: 'roof' } })),
    )
    for (const dst of ['fleet-00', 'fleet-01'])
      await call(server, 'POST /v1/graph/edges', { body: { src: 'weather', dst, edge_type: 'feeds' } })
    await call(server, 'POST /v1/graph/edges', {
      body: { src: 'fleet-00', dst: 'fleet-02', edge_type: 'sees' },
    })
    await newAgent(server, 'protected', 'protected')
    const [hash] = await writeMany(server, 'protected', [{ n: 1 }])
    await call(server, `DELETE /v1/agents/protected/records/${hash}`)
    for (let count = 0; count < 3; count += 1)
      await createKeyAs(server, server.rootKey, { scopes: ['records:read'] })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string): Promise<Page> => {
    return (await openSignedIn(server.url, { at })).page
  }
  /** Checks that a reload and another tab show the same, and that the page shows it at all. */
  const staysTheSame = async (page: Page): Promise<void> => {
    await page.getByText('Loading').waitFor({ state: 'detached' })
    const before = await page.evaluate(shown)
    await page.reload()
    await expect.poll(() => page.evaluate(shown), { timeout: 10_000 }).toEqual(before)
    const other = await page.context().newPage()
    await other.goto(page.url())
    await expect.poll(() => other.evaluate(shown), { timeout: 10_000 }).toEqual(before)
    await other.close()
  }
  const rows = (page: Page) => page.getByRole('rowheader').allTextContents()

  it('has the search, the order and the page of the agents', async () => {
    const page = await open('#/agents')
    await page.getByLabel('Name contains').fill('fleet')
    await page.getByText('60 agents').waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('rowheader', { name: 'fleet-59' }).waitFor()
    await staysTheSame(page)
    await page.getByRole('button', { name: 'Previous' }).click()
    await page.getByRole('rowheader', { name: 'fleet-00' }).waitFor()
    await page.getByRole('button', { name: 'Name' }).click()
    await page.getByRole('button', { name: 'Name' }).click()
    await expect.poll(async () => (await rows(page)).length).toBe(60)
    expect((await rows(page))[0]).toBe('fleet-59')
    await staysTheSame(page)
    await page.getByRole('link', { name: 'fleet-57' }).click()
    await page.getByRole('heading', { name: 'fleet-57' }).waitFor()
    await page.goBack()
    await expect.poll(async () => (await rows(page))[0]).toBe('fleet-59')
    expect(await page.getByLabel('Name contains').inputValue()).toBe('fleet')
  })

  it('has the filter, the columns, the order and the page of records, and the open record', async () => {
    const page = await open('#/agents/weather')
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('link', { name: 'Record 100', exact: true }).waitFor()
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'celsius' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Record 100', exact: true }).click()
    await page.getByRole('button', { name: 'Raw' }).click()
    await page.getByRole('dialog').locator('pre', { hasText: '"name":"roof"' }).waitFor()
    await staysTheSame(page)
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Record 100', exact: true }).waitFor()
    await page.goBack()
    await page.getByRole('dialog').waitFor()
    await page.goForward()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('tab', { name: 'Time', exact: true }).click()
    await page.getByRole('slider', { name: 'As of' }).waitFor()
    await page.getByRole('tab', { name: 'Records', exact: true }).click()
    await page.getByRole('link', { name: 'Record 100', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByLabel('Types').fill('reading')
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByRole('link', { name: 'Record 160', exact: true }).waitFor()
    await staysTheSame(page)
  })

  it('has the moments of the time travel', async () => {
    const page = await open('#/agents/weather/time')
    await page.getByRole('slider', { name: 'As of' }).fill('40')
    await page.getByRole('link', { name: 'Record 40', exact: true }).first().waitFor()
    await page.waitForURL(/at=40/)
    await staysTheSame(page)
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('slider', { name: 'Compared with' }).fill('30')
    await page.getByRole('button', { name: 'Read the 10 records in between' }).waitFor()
    await page.waitForURL(/at=40&at=30/)
    await staysTheSame(page)
  })

  it('has the filter, the moment and the steps of the graph', async () => {
    const page = await open('#/agents/weather/graph')
    await page.getByLabel('Steps').selectOption('1')
    await page.getByText('2 other agents by 2 edges').waitFor()
    await staysTheSame(page)
    await page.getByLabel('Edge type').fill('sees')
    await page.getByLabel('As of (local)').fill('2099-01-01T00:00:00')
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await page.getByText('0 other agents').waitFor()
    await staysTheSame(page)
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.getByText('2 other agents by 2 edges').waitFor()
    expect(await page.getByLabel('Edge type').inputValue()).toBe('')
  })

  it('has the user and the action for which rules are tried', async () => {
    const page = await open('#/agents/weather/rules')
    const claims = page.getByLabel('Claims of the token')
    await page.getByLabel('User, by e-mail prefix').fill('ada@example.com')
    await expect.poll(() => claims.inputValue()).toContain('"email": "ada@example.com"')
    await page.getByRole('radio', { name: 'Erase' }).check()
    await staysTheSame(page)
    expect(page.url()).toMatch(/rules[?]user=usr_[0-9a-f]{32}&action=erase$/)
    await claims.fill('{"sub":"usr_1","email":"z@example.com"}')
    await page.waitForURL(/rules[?]action=erase$/)
    await page.getByRole('tab', { name: 'Graph' }).click()
    await page.getByRole('tab', { name: 'Rules' }).click()
    expect(await claims.inputValue()).toContain('usr_1')
    await page.reload()
    await claims.waitFor()
    expect(await claims.inputValue()).toBe('')
  })

  it('has the search of users and keys, and their order', async () => {
    const page = await open('#/users')
    await page.getByLabel('E-mail begins with').fill('be')
    await page.getByText('2 users').waitFor()
    await page.getByRole('button', { name: 'Created' }).click()
    await staysTheSame(page)
    await page.getByRole('link', { name: 'Keys', exact: true }).click()
    await page.getByText('3 keys').waitFor()
    await page.getByLabel('Name or ID contains').fill('test')
    await page.getByRole('button', { name: 'Expires' }).click()
    await staysTheSame(page)
    expect(await page.getByLabel('Name or ID contains').inputValue()).toBe('test')
    await page.goBack()
    await page.getByText('2 users').waitFor()
  })

  it('has what the live view shows', async () => {
    const page = await open('#/agents/weather/live')
    await page.getByLabel('With field').fill('door')
    await page.getByLabel('From record').fill('159')
    await page.getByRole('button', { name: 'Pretty' }).click()
    await page.getByRole('button', { name: 'Start there' }).click()
    await page.getByRole('link', { name: 'Record 160', exact: true }).waitFor()
    const { hash } = new URL(page.url())
    const other = await page.context().newPage()
    await other.goto(page.url())
    await other.getByRole('link', { name: 'Record 160', exact: true }).waitFor()
    expect(await other.getByLabel('With field').inputValue()).toBe('door')
    expect(new URLSearchParams(hash.replace(/.*[?]/, '')).toString()).toBe('field=door&from=159&pretty=on')
    await other.goto(`${server.url}/console#/live/weather?minutes=600&field=celsius&system=on`)
    await other.getByRole('link', { name: 'Record 160 of weather', exact: true }).waitFor()
    expect(await other.getByLabel('Minutes ago').inputValue()).toBe('600')
    const system = other.getByRole('button', { name: 'System records' })
    expect(await system.getAttribute('aria-pressed')).toBe('true')
  })

  it('cannot break a screen', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/home', allowed: 'status of 4' })
    const parts = named
      .split(' ')
      .flatMap((screen) => hostile.map((part) => `${screen}/${encodeURIComponent(part)}`))
    const queries = screens.split(' ').flatMap((screen) =>
      hostile.map((_none, round) => {
        const valueOf = (at: number): string => hostile[(at + round) % hostile.length] ?? ''
        return `${screen}?${new URLSearchParams(names.split(' ').map((name, at) => [name, valueOf(at)]))}`
      }),
    )
    expect(await page.evaluate(firstBroken, [...parts, ...queries])).toBeUndefined()
  })

  it('has the list behind the drawer of a proposal', async () => {
    const page = await open('#/proposals/mine')
    await page.getByRole('rowheader').getByRole('link').click()
    await page.getByRole('dialog').waitFor()
    await staysTheSame(page)
    await page.keyboard.press('Escape')
    await page.locator('a[aria-current=page]', { hasText: 'Mine' }).waitFor()
    expect(page.url()).toBe(`${server.url}/console#/proposals/mine`)
  })

  it('has the filter of the audit records, also behind an open record', async () => {
    const page = await open('#/audit')
    await page.getByLabel('Time').selectOption('Between')
    await page.getByLabel('From').fill('2020-02-03T10:00:00')
    await page.getByLabel('Event').selectOption('Registered')
    await page.locator('td.event').first().waitFor()
    await expect.poll(() => page.locator('td.event').count()).toBe(3)
    await staysTheSame(page)
    await page.getByRole('rowheader').getByRole('link').first().click()
    await page.getByRole('dialog').waitFor()
    await staysTheSame(page)
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await page.getByLabel('From').inputValue()).toBe('2020-02-03T10:00')
    await page.getByLabel('User ID, e-mail or its HMAC').fill('bea@example.com')
    await expect.poll(() => page.locator('td.event').count()).toBe(1)
    await staysTheSame(page)
  })
})
