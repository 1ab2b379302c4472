import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openSignedIn, verdict } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { eventually } from '../support/eventually.js'
import { checkedCall } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { untilLogged } from '../support/server/server-log.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('the log in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_LOG_INTERVAL_SECS: '1' } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const checkpoint = async () =>
    (await checkedCall(server, 'GET /v1/log/checkpoint', { key: server.rootKey })).text

  /** Writes a record, and waits until the log has the heads of all strands. */
  const grow = async () => {
    await checkedCall(server, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
    await untilLogged(server, ['notes', 'default', 'server::audit'])
  }

  it('is witnessed by the browser, which stores the first checkpoint and verifies that the log only grows', async () => {
    await grow()
    const { page } = await openSignedIn(server.url, { at: '#/log' })
    expect(await verdict(page)).toMatch(
      /^Consistent; the signer is not known to you: the checkpoint of \d+ records? and the genesis is signed with the log’s key/,
    )
    await grow()
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('that this browser has seen').waitFor()
    expect(await verdict(page)).toMatch(
      /^Verified: the log of \d+ records? and the genesis begins with the \d+ .* 1 added since/,
    )
    await page.reload()
    await page.getByText('0 added since').waitFor()
    expect(await page.getByRole('table', { name: 'Visits' }).getByRole('rowheader').count()).toBe(3)
    expect(await faultsEverywhere(page)).toEqual([])
  })

  it('is verified at the first visit if its key is one that the user trusts', async () => {
    await grow()
    const status = await checkedCall(server, 'GET /v1/agents/server::log/status', { key: server.rootKey })
    const at = '#/agents/server%3A%3Alog/proof'
    const { page } = await openSignedIn(server.url, { at })
    await page.getByLabel('Public key that you trust').fill(status.body.public_key)
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    expect(await verdict(page)).toMatch(/^Verified: all/)
    await page.goto(`${server.url}/console#/log`)
    await page.getByText('This browser has stored it').waitFor()
    expect(await verdict(page)).toMatch(/^Verified: the checkpoint/)
  })

  it('shows an error with both checkpoints if the log was truncated or rewritten', async () => {
    const older = await checkpoint()
    await grow()
    const { page } = await openSignedIn(server.url, { at: '#/log' })
    await verdict(page)
    const stored = () => page.evaluate(() => localStorage.getItem('strandfast.witnessed'))
    const before = await stored()
    await page.route('**/v1/log/checkpoint', (found) =>
      found.fulfill({ body: older, contentType: 'text/plain' }),
    )
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('the log was truncated').waitFor()
    expect(await stored()).toBe(before)
    await page.unroute('**/v1/log/checkpoint')
    await grow()
    await page.route('**/v1/log/consistency*', async (found) => {
      const answer: { path: string[] } = await (await found.fetch()).json()
      const path = answer.path.map((hash) => `${hash.startsWith('0') ? '1' : '0'}${hash.slice(1)}`)
      await found.fulfill({ json: { ...answer, path } })
    })
    await page.getByRole('button', { name: 'Check again' }).click()
    await page.getByText('the log does not extend the one that this browser has seen').waitFor()
    expect(await verdict(page)).toMatch(/^Not verified/)
    await expect.poll(() => page.getByRole('button', { name: /^Discard/ }).isDisabled()).toBe(true)
    const saved: string[] = []
    page.on('download', (download) => saved.push(download.suggestedFilename()))
    await page.getByRole('button', { name: 'Download both' }).click()
    await eventually(() => saved.length === 2)
    expect(await stored()).toBe(before)
    await page.unroute('**/v1/log/consistency*')
    await page.getByRole('button', { name: /^Discard/ }).click()
    await page.getByText('This browser has stored it').waitFor()
  })

  it('reports that the server has no log', async () => {
    const without = await startServer({ env: { SERVICE_LOG_INTERVAL_SECS: '0' } })
    onTestFinished(() => without.stop())
    const { page } = await openSignedIn(without.url, { at: '#/log', allowed: '404' })
    await page.getByText('This server has no log').waitFor()
  })
})
