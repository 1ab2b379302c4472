import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { makeMixedStrand, writeMany } from '../support/console/strands.js'
import { newAgent } from '../support/http/answers.js'
import { signUp } from '../support/auth/users.js'
import { noBrowser } from '../support/http/browser.js'
import { type Change, type ChangingProxy, startChangingProxy } from '../support/http/changing-proxy.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

describe.skipIf(noBrowser)('a strand at a point in time in the console', () => {
  let server: TestServer
  let opened: ConsolePage
  let proxy: ChangingProxy | undefined

  beforeAll(async () => {
    server = await startAuthServer()
    await makeMixedStrand(server, 'mixed')
    await makePast('past')
  })

  afterAll(async () => {
    await server?.stop()
  })

  afterEach(() => {
    proxy?.stop()
    proxy = undefined
  })

  /** Records 1 to 3; record 4 deletes 1, 5 erases 2, 6 restores 1; 7 is a reading; 8 changes the zone. */
  const makePast = async (agent: string): Promise<void> => {
    await newAgent(server, agent)
    const [first, second] = await writeMany(server, agent, [{ n: 1 }, { n: 2 }, { n: 3, target_seq: 2 }])
    await call(server, `DELETE /v1/agents/${agent}/records/${first}`)
    await call(server, `POST /v1/agents/${agent}/records/${second}/erase`)
    await call(server, `POST /v1/agents/${agent}/records/${first}/restore`)
    await writeMany(server, agent, [{ n: 4 }])
    await call(server, `PUT /v1/agents/${agent}/zone`, { body: { zone: 'protected' } })
  }
  const open = async (agent: string, { url = server.url, key = server.rootKey } = {}): Promise<Page> => {
    opened = await openSignedIn(url, { at: `#/agents/${agent}/time`, key })
    await slider(opened.page).waitFor()
    return opened.page
  }
  const slider = (page: Page, name = 'As of') => page.getByRole('slider', { name, exact: true })
  const moment = (page: Page, name = 'The strand at that time') =>
    page.getByRole('region', { name, exact: true })
  const verdictIn = async (region: Locator): Promise<string> => {
    const shown = region.getByRole('status').filter({ hasText: /^(Verified|Consistent|Not verified)/ })
    return (await shown.locator('.verdict-text').textContent()) ?? ''
  }
  /** Waits until the handle rests at a record. @returns the verdict */
  const verdictAt = async (page: Page, seq: number): Promise<string> => {
    await moment(page)
      .getByRole('status')
      .filter({ hasText: new RegExp(`: record ${seq} `) })
      .waitFor()
    return verdictIn(moment(page))
  }
  const stateOf = (page: Page, seq: number) =>
    page
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: `Record ${seq}`, exact: true }) })
      .locator('.state')
      .textContent()
  const factsOf = (region: Locator) => region.locator('.line-facts dd').allTextContents()

  it('moves through the strand record by record, and proves each moment', async () => {
    const page = await open('past')
    expect(await verdictAt(page, 8)).toMatch(
      /^Consistent; the signer is not known to you: record 8 was the last record of past at that time\. Key …[0-9a-f]{8} signed the tree of its 8 records and the genesis/,
    )
    await slider(page).focus()
    for (let seq = 7; seq >= 4; seq -= 1) {
      await page.keyboard.press('ArrowLeft')
      expect(await verdictAt(page, seq)).toContain(
        `Consistent; the signer is not known to you: record ${seq} was the last record of past`,
      )
    }
    const facts = await factsOf(moment(page))
    expect([facts[0], facts[1], facts[5]]).toEqual(['4 and the genesis', 'Record 4', 'free'])
    expect(await page.getByRole('rowheader').allTextContents()).toEqual(['4', '3', '2', '1', '0'])
    // Record 1 was deleted at that time and restored later. The body of record 2 is erased at every moment.
    expect([await stateOf(page, 1), await stateOf(page, 2)]).toEqual(['deleted', 'erased'])
    await page.getByRole('button', { name: 'Previous record' }).click()
    await verdictAt(page, 3)
    expect(await stateOf(page, 1)).toBe('')
    await slider(page).press('Home')
    expect(await verdictAt(page, 0)).toContain('Consistent; the signer is not known to you: record 0')
    await expect.poll(() => page.getByRole('button', { name: 'Previous record' }).isDisabled()).toBe(true)
    await page.getByLabel('Record', { exact: true }).fill('2')
    await page.keyboard.press('Enter')
    expect(await verdictAt(page, 2)).toContain('Consistent; the signer is not known to you: record 2')
    expect(await slider(page).inputValue()).toBe('2')
    await slider(page).press('End')
    await verdictAt(page, 8)
    expect((await factsOf(moment(page)))[5]).toBe('protected')
  })

  it('sends one request for a handle that moves quickly, after it rests', async () => {
    const page = await open('mixed')
    await verdictAt(page, 8)
    const before = opened.requestedUrls.length
    await slider(page).focus()
    for (let presses = 0; presses < 5; presses += 1) await page.keyboard.press('ArrowLeft')
    expect(await verdictAt(page, 3)).toContain('Consistent; the signer is not known to you: record 3')
    const asOf = opened.requestedUrls.slice(before).filter((url) => url.includes('/as-of'))
    expect(asOf).toHaveLength(1)
  })

  it('moves to a typed time by the signed clocks, and reports a time before the strand', async () => {
    const page = await open('past')
    const late = await call(server, 'POST /v1/agents/past/records', { body: { data: { late: true } } })
    const ms = Number.parseInt(late.body.timestamp_hlc.slice(0, 12), 16)
    const typed = await page.evaluate((at) => {
      const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
      return local.toISOString().slice(0, 19)
    }, ms)
    await page.getByLabel('Time (local)').fill(typed)
    await page.getByRole('button', { name: 'Go to this time' }).click()
    // The record was written after the page loaded.
    expect(await verdictAt(page, 9)).toContain(
      'Consistent; the signer is not known to you: record 9 was the last record of past',
    )
    expect(await slider(page).inputValue()).toBe('9')
    await page.getByLabel('Time (local)').fill('2001-09-09T01:46:40')
    await page.getByRole('button', { name: 'Go to this time' }).click()
    await page.getByText('Nothing was recorded yet').waitFor()
  })

  it('proves moments at sealed records', async () => {
    const page = await open('mixed')
    for (const seq of [6, 7, 8]) {
      await slider(page).fill(String(seq))
      expect(await verdictAt(page, seq)).toContain(
        `Consistent; the signer is not known to you: record ${seq} `,
      )
    }
  })

  it('compares two moments: the records added, deleted, restored and erased in between', async () => {
    await makePast('compared')
    const page = await open('compared')
    await slider(page).fill('2')
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('button', { name: 'Read the 6 records in between' }).click()
    const changed = page.getByRole('region', { name: 'What changed' })
    expect(await verdictIn(changed)).toBe(
      'Consistent; the signer is not known to you: the 6 records of compared after record 2, up to record 8, are complete, signed and unchanged',
    )
    expect(await factsOf(changed)).toEqual(['2', '1', '1', '1', '1', '0', '0'])
    const listed = (name: string) => changed.getByRole('list', { name, exact: true }).getByRole('listitem')
    expect(await listed('Deleted').locator('span').textContent()).toBe('Record 1')
    expect(await listed('Erased').locator('span').textContent()).toBe('Record 2')
    expect(await listed('Restored').locator('span').textContent()).toBe('Record 1')
    expect(await listed('Added').locator('span').allTextContents()).toEqual([
      'reading {"n":4}',
      'reading {"n":3,"target_seq":2}',
    ])
    // The second handle can be before the first.
    await slider(page, 'Compared with').fill('1')
    await page.getByRole('button', { name: 'Read the 1 record in between' }).click()
    expect(await verdictIn(changed)).toContain('the 1 record of compared after record 1, up to record 2')
    await slider(page).fill('1')
    await page.getByText('Both handles are at the same record').waitFor()
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('rowheader', { name: 'Record 1', exact: true }).waitFor()
  })

  it('compares with a moment at a sealed record, and stops when the user cancels', async () => {
    const page = await open('mixed')
    await slider(page).fill('6')
    await page.getByRole('button', { name: 'Compare' }).click()
    await slider(page, 'Compared with').fill('7')
    const read = page.getByRole('button', { name: 'Read the 1 record in between' })
    await read.click()
    const changed = page.getByRole('region', { name: 'What changed' })
    expect(await verdictIn(changed)).toContain(
      'Consistent; the signer is not known to you: the 1 record of mixed after record 6, up to record 7',
    )
    await page.route('**/v1/strand/export*', () => undefined)
    await read.click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Stopped. No result is shown').waitFor()
  })

  it('restores the handle when the user returns from a record', async () => {
    const page = await open('mixed')
    await slider(page).fill('5')
    await verdictAt(page, 5)
    await page.getByRole('rowheader', { name: 'Record 4', exact: true }).click()
    await page.getByRole('dialog').waitFor()
    await page.goBack()
    await verdictAt(page, 5)
  })

  it('relies on the trusted key, and follows a rotation after the whole strand was checked', async () => {
    await newAgent(server, 'rotated')
    await writeMany(server, 'rotated', [{ n: 1 }])
    const { public_key: first } = (await call(server, 'GET /v1/agents/rotated/status')).body
    await call(server, 'POST /v1/agents/rotated/rotate-key', { body: {} })
    const page = await open('rotated')
    await verdictAt(page, 2)
    await page.getByText('What this proves and what it does not prove').click()
    await page.getByText('It relies on the key that this server reports').waitFor()
    const tab = (name: string) => page.getByRole('tab', { name, exact: true }).click()
    await tab('Proof')
    await page.getByLabel('Public key that you trust').fill(first)
    // The key is stored, but the check fails.
    await page.route('**/v1/strand/export*', (route) => route.fulfill({ body: 'nothing' }))
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await page.getByText('Not verified').waitFor()
    await page.unroute('**/v1/strand/export*')
    await tab('Time')
    expect(await verdictAt(page, 2)).toContain('is not the key that you trust')
    await tab('Proof')
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await page.getByText('Verified: all 2 records and the genesis of rotated').waitFor()
    await tab('Time')
    expect(await verdictAt(page, 2)).toContain('Verified: record 2 was the last record of rotated')
    await page.getByText('What this proves and what it does not prove').click()
    await page
      .getByText('It is signed with the key that you trust, or with a successor that this key signed')
      .waitFor()
    await page.getByText('It matches the strand that this browser checked').waitFor()
    await slider(page).fill('1')
    expect(await verdictAt(page, 1)).toContain('Verified: record 1 was the last record of rotated')
  })

  it('proves a moment to a user only at a record that the rules do not withhold', async () => {
    await newAgent(server, 'shared')
    await writeMany(server, 'shared', [{ open: true }, { open: false }])
    const conditions = [{ field: 'open', op: 'eq', value: true }]
    const policies = [{ actions: ['read'], conditions }]
    await call(server, 'PUT /v1/agents/shared/policies', { body: { policies } })
    const page = await open('shared', { key: await signUp(server, 'ann@example.org') })
    await slider(page).fill('2')
    expect(await verdictAt(page, 2)).toContain(
      'Not verified: record 2 of shared: the record and its proof are withheld',
    )
    const states = await Promise.all([0, 1, 2].map((seq) => stateOf(page, seq)))
    expect(states).toEqual(['', '', 'withheld'])
    await slider(page).fill('1')
    expect(await verdictAt(page, 1)).toContain(
      'Consistent; the signer is not known to you: record 1 was the last record of shared',
    )
  })

  it('does not accept a moment that contradicts the strand checked before', async () => {
    const page = await open('mixed')
    await page.getByRole('tab', { name: 'Proof', exact: true }).click()
    await page.getByRole('button', { name: 'Verify', exact: true }).click()
    await page
      .getByText('Consistent; the signer is not known to you: all 8 records and the genesis of mixed')
      .waitFor()
    const changeStored = (change: { size: number } | { rootText: string }) =>
      page.evaluate((changed) => {
        const [name = ''] = Object.keys(localStorage).filter((key) => key.includes('checked.'))
        const check = JSON.parse(localStorage.getItem(name) ?? '')
        const stored =
          'size' in changed
            ? { ...check, size: changed.size }
            : { ...check, checkpoint: check.checkpoint.replace(/\n9\n.{44}/, `\n9\n${changed.rootText}`) }
        localStorage.setItem(name, JSON.stringify(stored))
      }, change)
    await changeStored({ rootText: `${'A'.repeat(43)}=` })
    await page.getByRole('tab', { name: 'Time', exact: true }).click()
    await slider(page).fill('5')
    expect(await verdictAt(page, 5)).toContain(
      'Not verified: record 5 of mixed: it does not match the strand that this browser has checked',
    )
    await changeStored({ size: 12 })
    await slider(page).fill('4')
    expect(await verdictAt(page, 4)).toContain(
      'the strand was truncated: 11 records and the genesis were checked in this browser before, it now has 8 records and the genesis',
    )
  })

  describe('behind a proxy that changes answers', () => {
    /** The members of responses that the tests change. */
    interface Answer {
      chain_head: string
      record_count: number
      checkpoint: string
      path: string[]
      records: { seq: number }[]
    }
    const flipped = (hex: string) => `${hex.startsWith('0') ? '1' : '0'}${hex.slice(1)}`
    const inJson =
      (change: (answer: Answer) => Partial<Answer>): Change =>
      (_path, body) => {
        const answer: Answer = JSON.parse(body.toString())
        return JSON.stringify({ ...answer, ...change(answer) })
      }
    const lies: { what: string; in: RegExp; change: Change; reason: string }[] = [
      {
        what: 'head',
        in: /\/as-of/,
        change: inJson(({ chain_head: head }) => ({ chain_head: flipped(head) })),
        reason: 'the server reports another chain head for this moment',
      },
      {
        what: 'count',
        in: /\/as-of/,
        change: inJson(({ record_count: count }) => ({ record_count: count + 1 })),
        reason: 'the server reports 6 records after the genesis instead of 5',
      },
      {
        what: 'size of the tree',
        in: /\/as-of/,
        change: inJson(({ checkpoint }) => ({ checkpoint: checkpoint.replace(/\n\d+\n/, '\n7\n') })),
        reason: 'The checkpoint has 7 records, the answer 6',
      },
      {
        what: 'root',
        in: /\/as-of/,
        change: inJson(({ checkpoint }) => ({
          checkpoint: checkpoint.replace(/\n6\n.{43}=/, `\n6\n${'A'.repeat(43)}=`),
        })),
        reason: 'The checkpoint of the answer is not signed by the key',
      },
      {
        what: 'zone',
        in: /\/as-of/,
        change: (_path, body) => body.toString().replace('"zone":"free"', '"zone":"protected"'),
        reason: 'the server reports zone protected, but the records say free',
      },
      {
        what: 'mark of a deleted record',
        in: /\/query/,
        change: inJson(({ records }) => ({ records: records.filter(({ seq }) => seq !== 1) })),
        reason: 'the server reports record 1 as deleted at this moment, but the records contradict this',
      },
      {
        what: 'consistency proof',
        in: /\/consistency/,
        change: inJson(({ path }) => ({ path: path.map(flipped) })),
        reason: 'The proof does not show that the first 6 of 9 records are unchanged',
      },
      {
        what: 'path of the head',
        in: /\/strand\/proof/,
        change: inJson(({ path }) => ({ path: path.map(flipped) })),
        reason: 'The path of the last record does not lead to the root of the checkpoint',
      },
      {
        what: 'body',
        in: /\/export/,
        change: (_path, body) => body.toString().replace('{\\"celsius\\":2,', '{\\"celsius\\":9,'),
        reason: 'the body of record 2 does not match the commitment in its header',
      },
      {
        what: 'link',
        in: /\/export/,
        change: (_path, body) =>
          body
            .toString()
            .replace(/(seq 4\\nprev )([0-9a-f]{64})/, (_all, before, hex) => before + flipped(hex)),
        reason: 'record 4 does not link to its predecessor',
      },
    ]
    it.each(lies)('detects another $what than the signed one', async ({ in: concerned, change, reason }) => {
      proxy = await startChangingProxy(server.url, { concerns: (path) => concerned.test(path), change })
      const page = await open('mixed', { url: proxy.url })
      await slider(page).fill('5')
      expect(await verdictAt(page, 5)).toBe(`Not verified: record 5 of mixed: ${reason}`)
    })

    it('detects a moment at another record than the signed clocks say', async () => {
      let isUnchanged = true
      proxy = await startChangingProxy(server.url, {
        concerns: (path) => path.includes('/as-of'),
        change: inJson(() => {
          const change = isUnchanged ? {} : { record_count: 3 }
          isUnchanged = true
          return change
        }),
      })
      const page = await open('mixed', { url: proxy.url })
      await verdictAt(page, 8)
      await page.getByLabel('Time (local)').fill('2099-01-01T00:00:00')
      isUnchanged = false
      await page.getByRole('button', { name: 'Go to this time' }).click()
      expect(await verdictAt(page, 3)).toContain(
        'according to the clocks of the records, it was not the last record at 2099',
      )
    })

    it('detects a zone that does not follow from the records between two moments', async () => {
      await newAgent(server, 'longer')
      await writeMany(
        server,
        'longer',
        Array.from({ length: 60 }, (_none, n) => ({ n })),
      )
      proxy = await startChangingProxy(server.url, {
        concerns: (path) => path.includes('/as-of'),
        change: (_path, body) =>
          body.toString().replace(/("record_count":60,.*"zone":)"free"/, '$1"protected"'),
      })
      const page = await open('longer', { url: proxy.url })
      // The zone does not follow from the last 50 records, which the page shows.
      expect(await verdictAt(page, 60)).toContain('Consistent; the signer is not known to you: record 60')
      await page.getByText('What this proves and what it does not prove').click()
      await page.getByText('Not proved: the zone').waitFor()
      await slider(page).fill('55')
      await page.getByRole('button', { name: 'Compare' }).click()
      await page.getByRole('button', { name: 'Read the 5 records in between' }).click()
      expect(await verdictIn(page.getByRole('region', { name: 'What changed' }))).toBe(
        'Not verified: record 60 of longer: the server reports zone protected, but the records say free',
      )
    })

    it('detects a missing record between two moments', async () => {
      proxy = await startChangingProxy(server.url, {
        concerns: (path) => path.includes('from_seq=1&to_seq=8'),
        change: (_path, body) =>
          body
            .toString()
            .split('\n')
            .filter((line) => !line.includes('seq 4\\n'))
            .join('\n'),
      })
      const page = await open('mixed', { url: proxy.url })
      await slider(page).fill('1')
      await page.getByRole('button', { name: 'Compare' }).click()
      await page.getByRole('button', { name: 'Read the 7 records in between' }).click()
      const changed = page.getByRole('region', { name: 'What changed' })
      expect(await verdictIn(changed)).toContain('Not verified: record 4 of mixed')
    })
  })

  it('is accessible by axe and fits, with one handle and with two', async () => {
    const page = await open('past')
    await slider(page).fill('8')
    await verdictAt(page, 8)
    await page.getByText('What this proves and what it does not prove').click()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Compare' }).click()
    await slider(page).fill('1')
    await page.getByRole('button', { name: /^Read the \d+ records in between/ }).click()
    await verdictIn(page.getByRole('region', { name: 'What changed' }))
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
