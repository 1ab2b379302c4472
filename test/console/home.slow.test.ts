import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openConsole, openSignedIn, signIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { backUp } from '../support/server/backup.js'
import { type TestServer, startServer } from '../support/server/server.js'

const numbers = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ number: from + n }))

describe.skipIf(noBrowser)('Home in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_LOG_INTERVAL_SECS: '1' } })
    await writeMany(server, 'older', numbers(0, 15))
    await writeMany(server, 'newer', numbers(100, 15))
    await checkedCall(server, 'POST /v1/agents', { body: { name: 'guarded', zone: 'protected' } })
    await checkedCall(server, 'PUT /v1/agents/guarded/zone', { body: { zone: 'free' } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const tile = (page: Page, name: string) =>
    page
      .getByRole('list', { name: 'Metrics' })
      .getByRole('link')
      .filter({ has: page.locator('.tile-name').getByText(name, { exact: true }) })
  const tileNames = (page: Page) => page.locator('.tile-name').allTextContents()
  const rows = (page: Page) =>
    page
      .getByRole('list', { name: 'Last records' })
      .locator('li > a.agent + a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('aria-label')))

  it('is the first screen after the sign-in, with figures that link to details', async () => {
    const { page } = await openConsole(server.url)
    await signIn(page)
    await page.waitForURL('**/console#/home')
    await tile(page, 'Records per second').filter({ hasText: /\d/ }).waitFor()
    expect(await tileNames(page)).toEqual([
      'Agents',
      'Records',
      'Pending proposals',
      'Records per second',
      'Open streams',
      'Free disk space',
      'Last backup',
      'Log lag',
    ])
    const links = await page
      .locator('.tiles a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href')))
    expect(links.join(' ')).toBe('#/agents #/agents #/proposals #/live #/health #/health #/health #/log')
    const { body } = await checkedCall(server, 'GET /v1/agents?include=status')
    const records = body.statuses.reduce(
      (sum: number, one: { record_count: number }) => sum + one.record_count,
      0,
    )
    await tile(page, 'Agents').getByText(String(body.total), { exact: true }).waitFor()
    await tile(page, 'Records').getByText(String(records), { exact: true }).waitFor()
    await tile(page, 'Pending proposals').getByText('1', { exact: true }).waitFor()
    await tile(page, 'Open streams').getByText('1', { exact: true }).waitFor()
    await tile(page, 'Free disk space')
      .getByText(/^[\d.]+ [GT]B$/)
      .waitFor()
    await tile(page, 'Last backup').getByText('None').waitFor()
    await tile(page, 'Log lag')
      .getByText(/^\d+ seconds?$/)
      .waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('shows the last 20 records of all agents, and new records as they arrive', async () => {
    const { page } = await openSignedIn(server.url)
    const newest = page.getByRole('link', { name: 'Record 15 of newer', exact: true })
    await newest.waitFor()
    const before = await rows(page)
    expect(before).toHaveLength(20)
    const own = before.filter((name) => / of (older|newer)$/.test(name ?? ''))
    expect(own.slice(0, 16)).toEqual([
      ...Array.from({ length: 15 }, (_, n) => `Record ${15 - n} of newer`),
      'Record 15 of older',
    ])
    await writeMany(server, 'older', numbers(15, 2))
    await page.getByRole('link', { name: 'Record 17 of older', exact: true }).waitFor()
    const after = await rows(page)
    expect(after).toHaveLength(20)
    expect(after.slice(0, 2)).toEqual(['Record 17 of older', 'Record 16 of older'])
    expect(new Set(after).size).toBe(20)
    await newest.click()
    await page.getByRole('button', { name: 'Prove' }).waitFor()
  })

  it('shows system records too on request: a deletion, and later an erasure', async () => {
    await newAgent(server, 'kept')
    const [hash = ''] = await writeMany(server, 'kept', [{ n: 1 }, { n: 2 }])
    await checkedCall(server, `DELETE /v1/agents/kept/records/${hash}`)
    const { page } = await openSignedIn(server.url, { at: '#/home' })
    const rows = page.getByRole('list', { name: 'Last records' })
    await rows.getByText('{"n":2}').waitFor()
    expect(await rows.getByText('sys/tombstone').count()).toBe(0)
    await page.getByRole('button', { name: 'System records' }).click()
    await rows.getByText('sys/tombstone').waitFor()
    await checkedCall(server, `POST /v1/agents/kept/records/${hash}/erase`)
    await rows.getByText('sys/erase').waitFor()
    await page.getByRole('button', { name: 'System records' }).click()
    await rows.getByText('sys/erase').waitFor({ state: 'detached' })
    await rows.getByText('{"n":2}').waitFor()
  })

  it('shows the time of the last backup', async () => {
    const target = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
    expect((await backUp(server.dataDir, target)).code).toBe(0)
    rmSync(target, { recursive: true })
    const { page } = await openSignedIn(server.url)
    await tile(page, 'Last backup')
      .getByText(/seconds? ago$/)
      .waitFor()
  })

  it('shows a key with few scopes what it can read, and requests nothing else', async () => {
    const expected = [
      ['records:read', ['Agents', 'Records']],
      ['proposals:decide', ['Pending proposals']],
      ['ingest', []],
    ] as const
    for (const [scope, names] of expected) {
      const { key } = await scopedKey(server, [scope])
      const { page } = await openSignedIn(server.url, { key })
      if (names.length === 0) await page.getByText('No records or proposals to show').waitFor()
      else await tile(page, names[0]).waitFor()
      expect([scope, await tileNames(page)]).toEqual([scope, names])
      if (scope === 'records:read')
        await page
          .getByRole('link', { name: /of newer$/ })
          .first()
          .waitFor()
    }
  })

  it('shows a key that is limited to agents only records of these, including new ones', async () => {
    const { key } = await scopedKey(server, ['records:read', 'admin:*'], ['new*', 'absent'])
    // The agent `absent` does not exist.
    const { page } = await openSignedIn(server.url, { key, allowed: 'status of 404' })
    await page.getByRole('link', { name: 'Record 15 of newer', exact: true }).waitFor()
    await tile(page, 'Agents').getByText('1', { exact: true }).waitFor()
    expect((await rows(page)).every((name) => name?.endsWith(' of newer'))).toBe(true)
    await writeMany(server, 'newer', numbers(115, 1))
    await page.getByRole('link', { name: 'Record 16 of newer', exact: true }).waitFor()
  })
})

describe.skipIf(noBrowser)('warnings on Home', () => {
  it('report a read-only server, a missing license and refused lines', async () => {
    const first = await startServer()
    const refused = await checkedCall(first, 'POST /v1/ingest/readings?on_error=keep', {
      headers: { 'content-type': 'application/x-ndjson' },
      raw: '{"n":1}\nno json\n',
    })
    expect(refused.status).toBe(200)
    const { page } = await openSignedIn(first.url)
    await page.getByText('Ingest lines were refused').waitFor()
    await page.getByText('1 line since the server started').waitFor()
    expect(await page.locator('.warnings p').count()).toBe(1)
    await page.close()
    await first.halt()
    const env = { SERVICE_MIN_FREE_BYTES: String(2 ** 52), SERVICE_AUTH_ENABLED: 'true' }
    const full = await startServer({ dataDir: first.dataDir, env })
    onTestFinished(() => full.stop())
    const second = await openSignedIn(full.url, { allowed: '503' })
    await second.page.getByText('The server is read-only.', { exact: true }).waitFor()
    await second.page.getByText('The license is absent').waitFor()
    await second.page.getByText('anyone on this machine can sign in as any user').waitFor()
    expect(await faultsEverywhere(second.page)).toEqual([])
  })
})
