import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ConsolePage, openConsole, openSignedIn, verdict } from '../support/console/console-page.js'
import { writeMany } from '../support/console/strands.js'
import { noBrowser } from '../support/http/browser.js'
import { type Change, type ChangingProxy, startChangingProxy } from '../support/http/changing-proxy.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

const RECORDS = 3_000

describe.skipIf(noBrowser)('checks in the console', () => {
  let server: TestServer
  let opened: ConsolePage
  let folder: string
  let publicKey: string
  let proxy: ChangingProxy | undefined

  beforeAll(async () => {
    server = await startServer()
    folder = mkdtempSync(join(tmpdir(), 'strandfast-files-'))
    for (let at = 0; at < RECORDS; at += 1_000) {
      await writeMany(
        server,
        'long',
        Array.from({ length: 1_000 }, (_, index) => ({ number: at + index })),
      )
    }
    publicKey = (await call(server, 'GET /v1/agents/long/status')).body.public_key
  })

  afterAll(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  afterEach(() => {
    proxy?.stop()
    proxy = undefined
  })

  const open = async (at: string, url = server.url): Promise<Page> => {
    opened = await openSignedIn(url, { at })
    return opened.page
  }
  const verify = (page: Page) => page.getByRole('button', { name: 'Verify', exact: true }).click()

  it('checks a whole strand, and later only the added records', async () => {
    const page = await open('#/agents/long/proof')
    await page.getByLabel('Public key that you trust').fill(publicKey)
    await verify(page)
    expect(await verdict(page)).toBe('Verified: all 3,000 records and the genesis of long')
    await page.getByText('It is signed with the key that you trust').waitFor()
    await writeMany(server, 'long', [{ later: 1 }, { later: 2 }])
    await page.reload()
    await page.getByText('Only records added since').waitFor()
    const before = opened.requestedUrls.length
    await verify(page)
    expect(await verdict(page)).toBe('Verified: 2 records added to long since the last check, up to 3002')
    const exports = opened.requestedUrls.slice(before).filter((url) => url.includes('/export'))
    expect(exports.map((url) => new URL(url).searchParams.get('from_seq'))).toEqual(['3000'])
  })

  it('calls a strand consistent, and its signer unknown, without a key that the user trusts', async () => {
    const page = await open('#/agents/long/proof')
    const amber = page.locator('.verdict.warn')
    await verify(page)
    await amber.getByText('Consistent; the signer is not known to you: all').waitFor()
    await page.getByText('you gave no key that you know from another source').waitFor()
    await page.reload()
    await page.getByText('Only records added since').waitFor()
    await verify(page)
    await amber.getByText('Consistent; the signer is not known to you: 0 records added to long').waitFor()
    await page.goto(`${server.url}/console#/agents/long/time`)
    await amber.getByText('Consistent; the signer is not known to you: record').waitFor()
    await page.goto(`${server.url}/console#/agents/long/9`)
    await page.getByRole('button', { name: 'Prove' }).click()
    await amber.getByText('Consistent; the signer is not known to you: record 9 of long').waitFor()
    await page.getByRole('link', { name: 'check the whole strand' }).click()
    await page.getByLabel('Public key that you trust').fill(publicKey)
    await verify(page)
    await page.locator('.verdict.good').getByText('Verified: all').waitFor()
    await page.goto(`${server.url}/console#/agents/long/9`)
    await page.getByRole('button', { name: 'Prove' }).click()
    await page.locator('.verdict.good').getByText('Verified: record 9 of long').waitFor()
  })

  it('does not verify a record whose strand has another key than the trusted one', async () => {
    const { public_key: other } = (await call(server, 'GET /v1/agents/default/status')).body
    const page = await open('#/agents/long/proof')
    await page.getByLabel('Public key that you trust').fill(other)
    await verify(page)
    await verdict(page)
    await page.goto(`${server.url}/console#/agents/long/9`)
    await page.getByRole('button', { name: 'Prove' }).click()
    expect(await verdict(page)).toMatch(
      /^Not verified: record 9 of long: the current key, \S+, is not the key that you trust/,
    )
  })

  it('follows a key rotation after the last check, and one before it', async () => {
    await call(server, 'POST /v1/agents', { body: { name: 'rotated', zone: 'free' } })
    await writeMany(server, 'rotated', [{ number: 1 }])
    const { public_key: first } = (await call(server, 'GET /v1/agents/rotated/status')).body
    const page = await open('#/agents/rotated/proof')
    await page.getByLabel('Public key that you trust').fill(first)
    await verify(page)
    expect(await verdict(page)).toBe('Verified: all 1 record and the genesis of rotated')
    expect((await call(server, 'POST /v1/agents/rotated/rotate-key', { body: {} })).status).toBe(200)
    await writeMany(server, 'rotated', [{ number: 2 }])
    await page.reload()
    await page.getByText('Only records added since').waitFor()
    await verify(page)
    expect(await verdict(page)).toBe('Verified: 2 records added to rotated since the last check, up to 3')
    await page.getByRole('button', { name: 'Check everything again' }).click()
    await page.getByText('Verified: all 3 records and the genesis of rotated').waitFor()
    await page.getByText('2, each signed by its predecessor').waitFor()
    await page.goto(`${server.url}/console#/agents/rotated/1`)
    await page.getByRole('button', { name: 'Prove' }).click()
    expect(await verdict(page)).toContain('Verified: record 1 of rotated')
  })

  it('does not accept another key than the trusted one', async () => {
    const other = (await call(server, 'GET /v1/agents/default/status')).body.public_key
    const page = await open('#/agents/long/proof')
    await page.getByLabel('Public key that you trust').fill(other)
    await verify(page)
    expect(await verdict(page)).toContain('Not verified: long: No record is signed by the key given')
  })

  it('detects a truncated strand and a rewritten one by the stored check', async () => {
    const page = await open('#/agents/long/proof')
    await verify(page)
    await verdict(page)
    const stored = await page.evaluate(() => ({ ...localStorage }))
    const [name = '', text = ''] = Object.entries(stored).find(([key]) => key.includes('checked.')) ?? []
    const check = JSON.parse(text)
    const checkAgainst = async (changed: object): Promise<void> => {
      await page.evaluate(
        ([key = '', value = '']) => localStorage.setItem(key, value),
        [name, JSON.stringify({ ...check, ...changed })],
      )
      await page.reload()
      await page.getByText('Only records added since').waitFor()
      await verify(page)
    }
    await checkAgainst({ size: check.size + 5 })
    expect(await verdict(page)).toContain('The strand was truncated')
    await checkAgainst({ chainHead: 'ab'.repeat(32) })
    expect(await verdict(page)).toContain(
      `Not verified: record ${check.size - 1} of long: The record differs from the one that was checked before`,
    )
  })

  it('stops when the user cancels', async () => {
    const page = await open('#/agents/long/proof')
    await page.route('**/v1/strand/export*', () => undefined)
    await verify(page)
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await verdict(page)).toBe('Not verified: the check was stopped')
  })

  describe('behind a proxy that changes answers', () => {
    const through = async (at: string, concerns: RegExp, change: Change): Promise<Page> => {
      proxy = await startChangingProxy(server.url, { concerns: (path) => concerns.test(path), change })
      return open(at, proxy.url)
    }

    it.each([
      ['a body', '{\\"number\\":1233}', '{\\"number\\":1234}'],
      ['a header', '\\nseq 1234\\n', '\\nseq 1235\\n'],
    ])('names the record of an export in which one byte of %s was changed', async (_part, found, put) => {
      let isChanged = false
      const page = await through('#/agents/long/proof', /\/export/, (_path, body) => {
        const text = body.toString()
        isChanged = text.includes(found)
        return text.replace(found, put)
      })
      await verify(page)
      expect(await verdict(page)).toContain('Not verified: record 1234 of long')
      expect(isChanged).toBe(true)
    })

    it('names the record of a proof in which one sibling was changed', async () => {
      const page = await through('#/agents/long/77', /\/strand\/proof/, (_path, body) => {
        const proof = JSON.parse(body.toString())
        proof.path[3] = `${proof.path[3].startsWith('0') ? '1' : '0'}${proof.path[3].slice(1)}`
        return JSON.stringify(proof)
      })
      await page.getByRole('button', { name: 'Prove' }).click()
      expect(await verdict(page)).toBe(
        'Not verified: record 77 of long: its path does not lead to the root of the tree',
      )
    })

    it('names the record whose body was changed', async () => {
      const page = await through('#/agents/long/77', /\/export/, (_path, body) =>
        body.toString().replace('{\\"number\\":76}', '{\\"number\\":77}'),
      )
      await page.getByRole('button', { name: 'Prove' }).click()
      expect(await verdict(page)).toBe(
        'Not verified: record 77 of long: its body does not match the commitment in its header',
      )
    })
  })

  describe('of files, without signing in', () => {
    const put = (name: string, content: string | Buffer): string => {
      const path = join(folder, name)
      writeFileSync(path, content)
      return path
    }
    const check = async (page: Page, path: string): Promise<string> => {
      await page.getByLabel('Drop a file here, or choose one').setInputFiles(path)
      // Until then, the verdict is that of the file before.
      await page.getByRole('button', { name: `Check ${basename(path)} again`, disabled: false }).waitFor()
      return verdict(page)
    }

    it('verifies exports, plain and compressed, and names the invalid record', async () => {
      const { text } = await call(server, 'GET /v1/strand/export?agent=long&to_seq=50')
      const { page } = await openConsole(server.url, { at: '#/verify' })
      const consistent =
        'Consistent; the signer is not known to you: 50 records and the genesis of long, 0 to 50'
      expect(await check(page, put('unknown.ndjson', text))).toBe(consistent)
      await page.locator('.verdict.warn').waitFor()
      await page.getByLabel('Public key that you trust').fill(publicKey)
      // The key is used only when the file is checked again.
      expect(await verdict(page)).toBe(consistent)
      await page.getByText('The owner of the strand').waitFor()
      expect(await check(page, put('plain.ndjson', text))).toBe(
        'Verified: 50 records and the genesis of long, 0 to 50',
      )
      expect(await check(page, put('packed.ndjson.gz', gzipSync(text)))).toContain('Verified: 50 records')
      const changed = put('changed.ndjson', text.replace('{\\"number\\":40}', '{\\"number\\":41}'))
      expect(await check(page, changed)).toBe('Not verified: record 41: The body is not the one committed to')
      expect(await check(page, put('cut.ndjson', text.split('\n').slice(0, 9).join('\n')))).toContain(
        'The export is cut off',
      )
    })

    it('verifies checkpoints and proofs with the given key', async () => {
      const checkpoint = await call(server, 'GET /v1/strand/checkpoint?agent=long')
      const { records } = (
        await call(server, 'POST /v1/agents/long/query', { body: { type: 'latest', limit: 1 } })
      ).body
      const proof = await call(server, `GET /v1/strand/proof?agent=long&hash=${records[0].content_hash}`)
      const { page } = await openConsole(server.url, { at: '#/verify' })
      const note = put('checkpoint.txt', checkpoint.text)
      expect(await check(page, note)).toContain('Not verified: a checkpoint proves nothing without a key')
      await page.getByLabel('Public key that you trust').fill(publicKey)
      await page.getByRole('button', { name: 'Check checkpoint.txt again' }).click()
      await page.getByText('is signed with key').waitFor()
      expect(await check(page, put('proof.json', proof.text))).toContain(`Verified: record ${records[0].seq}`)
      const broken = JSON.stringify({ ...proof.body, seq: proof.body.seq - 1 })
      expect(await check(page, put('broken.json', broken))).toContain(
        `Not verified: record ${records[0].seq - 1}`,
      )
      expect(await check(page, put('other.txt', 'no such thing'))).toContain(
        'Not verified: the file is not an export',
      )
    })
  })
})
