import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { makeMixedStrand, writeMany } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { exportOf, importTo, rotatedSeed, sharedSeed } from '../support/shard/imports.js'
import { freePort } from '../support/server/free-port.js'
import { type TestServer, call, startServer, testRootKey } from '../support/server/server.js'

const AGENTS = 10_000
const RECORDS = 100_000
/** The records per request, and the requests, of the test of the live view. */
const BATCH = 500
const BATCHES = 20

describe.skipIf(noBrowser)('large amounts of data in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({
      env: { SERVICE_RATE_LIMIT_RPS: '100000', SERVICE_RATE_LIMIT_BURST: '100000' },
    })
    await ingest(AGENTS, (at) => ({ agent: `many.${String(at).padStart(5, '0')}`, data: { at } }))
    await ingest(RECORDS, (at) => ({ agent: 'long', data: { at } }))
  })

  afterAll(async () => {
    await server?.stop()
  })

  const ingest = async (count: number, lineOf: (at: number) => object): Promise<void> => {
    const lines = Array.from({ length: count }, (_none, at) => `${JSON.stringify(lineOf(at))}\n`)
    const response = await fetch(`${server.url}/v1/ingest`, {
      method: 'POST',
      headers: { authorization: `Bearer ${testRootKey}`, 'content-type': 'application/x-ndjson' },
      body: lines.join(''),
    })
    expect([response.status, await response.json()]).toMatchObject([200, { accepted: count, rejected: 0 }])
  }
  const open = async (at: string): Promise<Page> => {
    return (await openSignedIn(server.url, { at })).page
  }
  const shown = (page: Page, seq: number) =>
    page.getByRole('link', { name: `Record ${seq.toLocaleString('en')}`, exact: true }).waitFor()
  const nodes = (page: Page) => page.evaluate(() => document.querySelectorAll('*').length)

  it('lists ten thousand agents in pages, and finds one by its name', async () => {
    const page = await open('#/agents')
    await page.getByRole('rowheader', { name: 'many.00000' }).waitFor()
    expect(await page.getByRole('rowheader').count()).toBe(50)
    expect(await nodes(page)).toBeLessThan(2_000)
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByRole('rowheader', { name: 'many.00060' }).waitFor()
    await page.getByLabel('Name contains').fill('many.0999')
    await page.getByText('10 agents').waitFor()
    await page.getByRole('link', { name: 'many.09999', exact: true }).click()
    await shown(page, 1)
  })

  it('opens and proves any of a hundred thousand records, and any moment of the strand', async () => {
    const page = await open('#/agents/long')
    await shown(page, RECORDS)
    expect(await nodes(page)).toBeLessThan(4_000)
    await page
      .getByLabel('Go to record')
      .or(page.getByPlaceholder(`0 to ${RECORDS}, or a hash`))
      .first()
      .fill('50000')
    await page.getByRole('button', { name: 'Go to record' }).click()
    await page.getByRole('button', { name: 'Prove' }).click()
    expect(await verdict(page)).toContain('Consistent; the signer is not known to you: record 50000 of long')
    await page.goto(`${server.url}/console#/agents/long/time`)
    await verdict(page)
    await page.getByLabel('Record', { exact: true }).fill('12345')
    await page.keyboard.press('Enter')
    await page
      .getByText('Consistent; the signer is not known to you: record 12345 was the last record of long')
      .waitFor()
  })

  it('shows thousands of records per second as they arrive, and retains 500', async () => {
    await writeMany(server, 'fast', [{ at: 0 }])
    const page = await open('#/agents/fast/live')
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
    for (let batch = 0; batch < BATCHES; batch += 1) {
      await writeMany(
        server,
        'fast',
        Array.from({ length: BATCH }, (_none, at) => ({ at: batch * BATCH + at })),
      )
    }
    await shown(page, BATCHES * BATCH + 1)
    const seqs = await page
      .getByRole('list', { name: /^Live records/ })
      .getByRole('link')
      .allTextContents()
    const numbers = seqs.map((text) => Number(text.replaceAll(/\D/g, '')))
    expect(numbers).toEqual(Array.from({ length: 500 }, (_none, at) => BATCHES * BATCH + 1 - at))
    expect(await nodes(page)).toBeLessThan(6_000)
  })
})

describe.skipIf(noBrowser)('the live view during a restart of the server', () => {
  it('reconnects without missing a record', async () => {
    const env = { SERVICE_PORT: String(await freePort()) }
    const first = await startServer({ env })
    await writeMany(first, 'steady', [{ at: 0 }])
    const { page, allow } = await openSignedIn(first.url, {
      at: '#/agents/steady/live',
    })
    for (const expected of ['ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED', 'status of 503'])
      allow(expected)
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor()
    await writeMany(first, 'steady', [{ at: 1 }, { at: 2 }])
    await page.getByRole('link', { name: 'Record 3', exact: true }).waitFor()
    await first.halt()
    await page.getByText('The server does not respond').waitFor()
    const second = await startServer({ env, dataDir: first.dataDir })
    onTestFinished(() => second.stop())
    await writeMany(second, 'steady', [{ at: 3 }, { at: 4 }])
    await page.getByText('The server is back').waitFor()
    await page.getByRole('link', { name: 'Record 5', exact: true }).waitFor()
    const seqs = await page
      .getByRole('list', { name: /^Live records/ })
      .getByRole('link')
      .allTextContents()
    expect(seqs).toEqual(['5', '4', '3', '2'])
  })
})

describe.skipIf(noBrowser)('an imported strand in the console', () => {
  it('is shown and proved like the original, with deleted, erased and sealed records and a rotated key', async () => {
    const source = await startServer({ env: sharedSeed })
    await makeMixedStrand(source, 'moved')
    expect(
      (await call(source, 'POST /v1/agents/moved/rotate-key', { body: { seed_hex: rotatedSeed } })).status,
    ).toBe(200)
    await writeMany(source, 'moved', [{ celsius: 9 }])
    const text = await exportOf(source, 'moved')
    await source.stop()
    const target = await startServer({ env: sharedSeed })
    onTestFinished(() => target.stop())
    const headers = { 'strandfast-agent-seed': rotatedSeed }
    expect((await importTo(target, text, { headers })).status).toBe(200)
    const { page } = await openSignedIn(target.url, { at: '#/agents/moved' })
    await page.getByRole('link', { name: 'Record 0', exact: true }).waitFor()
    const states = await page.getByRole('row').allTextContents()
    expect(states.filter((row) => row.includes('deleted')).length).toBe(1)
    expect(states.filter((row) => row.includes('erased')).length).toBe(1)
    await page.goto(`${target.url}/console#/agents/moved/1`)
    await page.getByRole('button', { name: 'Prove' }).click()
    expect(await verdict(page)).toContain('Consistent; the signer is not known to you: record 1 of moved')
    await page.goto(`${target.url}/console#/agents/moved/proof`)
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    expect(await verdict(page)).toMatch(
      /^Consistent; the signer is not known to you: all \d+ records and the genesis of moved/,
    )
  })
})
