import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn, signIn, verdict } from '../support/console/console-page.js'
import { checkedCall, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('a first record, in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(async () => {
    await server?.stop()
  })

  it('is written, arrives and is proved, starting from the sign-in', async () => {
    const { page } = await openConsole(server.url)
    await signIn(page)
    await page.getByRole('link', { name: 'Write a first record' }).click()
    await page.getByLabel('Text of the record').fill('<b>first</b>')
    await page.getByRole('button', { name: 'Write record' }).click()
    const arrived = page.getByRole('list', { name: 'Records that have arrived' })
    await arrived.getByText('{"text":"<b>first</b>"}').waitFor()
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    expect(await verdict(page)).toMatch(
      /^Consistent; the signer is not known to you: record 1 of first is in the checkpoint of 1 record and the genesis/,
    )
    expect(await axeFindings(page)).toEqual([])
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download keys and checkpoints' }).click(),
    ])
    const saved = JSON.parse(readFileSync(await download.path(), 'utf8'))
    const { body } = await checkedCall(server, 'GET /v1/agents/first/status')
    expect(saved).toMatchObject({ agent: 'first', strand: body.strand, public_key: body.public_key })
    expect(saved.checkpoint).toContain(body.strand)
    expect(saved.log.checkpoint).toContain(saved.log.strand)
    const [verifier] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download verify.py' }).click(),
    ])
    expect(verifier.suggestedFilename()).toBe('verify.py')
    const written = join(import.meta.dirname, '../../examples/verify.py')
    expect(readFileSync(await verifier.path(), 'utf8')).toBe(readFileSync(written, 'utf8'))
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name', { exact: true }).fill('importer')
    await page.getByLabel('ingest').check()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('button', { name: 'I’ve saved it' }).click()
    await page.getByText('Now store the root key in a safe place').waitFor()
    const exported = await fetch(`${server.url}/v1/strand/export?agent=first`, {
      headers: { authorization: `Bearer ${server.rootKey}` },
    })
    const file = {
      name: 'first.ndjson',
      mimeType: 'text/plain',
      buffer: Buffer.from(await exported.arrayBuffer()),
    }
    await page.goto(`${server.url}/console#/verify`)
    await page.getByLabel('Drop a file here').setInputFiles(await download.path())
    await page.getByText('of first are filled in below').waitFor()
    expect(await page.getByLabel('Public key that you trust').inputValue()).toBe(body.public_key)
    await page.getByLabel('Drop a file here').setInputFiles(file)
    expect(await verdict(page)).toBe(
      'Verified: 1 record and the genesis of first, 0 to 1, extending the 1 record and the genesis of the saved checkpoint',
    )
    expect(await axeFindings(page)).toEqual([])
    await page.goto(`${server.url}/console#/`)
    await page.getByRole('link', { name: 'Record 1 of first', exact: true }).waitFor()
    expect(await page.getByRole('link', { name: 'Write a first record' }).count()).toBe(0)
  })

  it('shows examples for programs with the URL of this server', async () => {
    const { page } = await openSignedIn(server.url, { at: '#/start' })
    await page.getByText('From a program').click()
    const examples = await page.locator('.write-examples pre').allTextContents()
    expect(examples).toHaveLength(5)
    for (const example of examples) expect(example).toContain(server.url)
  })

  it('names the scopes that a read-only key lacks', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const { page } = await openSignedIn(server.url, { at: '#/start', key })
    await page.getByText('This key cannot write and read records').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Write record' }).isDisabled()).toBe(true)
  })
})
