import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../support/auth/accounts.js'
import { openConsole, openSignedIn, verdict } from '../support/console/console-page.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

/** One of each kind: a mark of direction, a zero-width space, a joiner, a word joiner and a byte order mark. */
const marks = '\u202e\u200b\u200d\u2060\ufeff'
const escapedMarks = '\\u202e\\u200b\\u200d\\u2060\\ufeff'
/** Without those that the names of API keys must not have. */
const nameMarks = '\u200b\u2060'

/** A text that looks like `label` alone. */
const planted = (label: string): string => `${label}${marks}`
const trace = '0af7651916cd43dd8448eb211c80319c'

/** A record of OpenTelemetry in which each text is planted. */
const telemetry = {
  traceId: trace,
  spanId: 'b7ad6b7169203331',
  name: planted('span-name'),
  kind: 2,
  startTimeUnixNano: '1760000000000000000',
  endTimeUnixNano: '1760000000500000000',
  timeUnixNano: '1760000000100000000',
  status: { code: 2, message: planted('status-message') },
  severityNumber: 17,
  severityText: planted('severity-text'),
  body: { stringValue: planted('log-body') },
  eventName: planted('event-name'),
  resource: {
    attributes: [{ key: 'service.name', value: { stringValue: planted('service-name') } }],
  },
  scope: { name: planted('scope-name'), version: planted('scope-version') },
  attributes: [{ key: planted('attribute-key'), value: { stringValue: planted('attribute-value') } }],
}

describe.skipIf(noBrowser)('a mark that is invisible or changes directions', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: '2' } })
    await newAgent(server, 'texts')
    await newAgent(server, 'decided', 'protected')
    const write = (data: object, type?: string) =>
      checkedCall(server, 'POST /v1/agents/texts/records', {
        body: { data, ...(type !== undefined && { type }) },
      })
    await write({
      [planted('member')]: planted('value'),
      list: [planted('item')],
      long: planted('x'.repeat(400)),
    })
    await write(telemetry, 'otel/span')
    await write({ ...telemetry, parentSpanId: telemetry.spanId, spanId: 'c7ad6b7169203332' }, 'otel/log')
    await write({ [planted('member')]: planted('changed'), list: [] })
    const conditions = [
      { field: planted('field'), op: 'eq', value: planted('wanted') },
      { field: 'list', op: 'in', value: [planted('item')] },
    ]
    for (const agent of ['texts', 'decided'])
      await call(server, `PUT /v1/agents/${agent}/policies`, {
        body: { policies: [{ actions: ['read'], conditions }] },
      })
    await call(server, 'POST /v1/admin/api-keys', {
      body: { name: `key-name${nameMarks}`, scopes: ['records:read'] },
    })
    const account = await register(server, 'ada@example.com')
    const metadata = { [planted('claim')]: planted('claim-value') }
    await checkedCall(server, 'PATCH /v1/auth/users/ada@example.com/app-metadata', { body: { metadata } })
    await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: account.token, body: { metadata } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  /** The texts and attributes of the page that contain a mark, except what the user edits and addresses. */
  const hidden = (page: Page): Promise<string[]> =>
    page.evaluate(() => {
      const mark = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/
      const found = mark.test(document.title) ? [`title: ${document.title}`] : []
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
      for (let node = texts.nextNode(); node !== null; node = texts.nextNode())
        if (mark.test(node.nodeValue ?? '')) found.push(`text: ${node.nodeValue}`)
      for (const element of document.querySelectorAll('*'))
        for (const { name, value } of element.attributes)
          if (!['value', 'href'].includes(name) && mark.test(value)) found.push(`${name}: ${value}`)
      return found
    })

  /** Expects these texts, and no mark; a text is followed by its escaped marks. */
  async function expectShown(page: Page, labels: readonly string[]): Promise<void> {
    for (const label of labels) {
      const shown = `${label}${label === 'key-name' ? '\\u200b\\u2060' : escapedMarks}`
      await expect
        .poll(() => page.locator('body').textContent(), {
          message: `${page.url()} shows ${label}`,
          timeout: 10_000,
        })
        .toContain(shown)
    }
    expect(await hidden(page), page.url()).toEqual([])
  }

  it.each([
    ['the records of an agent', '#/agents/texts', ['member', 'span-name', 'log-body']],
    [
      'columns of records',
      `#/agents/texts?column=${encodeURIComponent(planted('member'))}`,
      ['member', 'value'],
    ],
    ['a record', '#/agents/texts/1', ['member', 'value', 'item']],
    ['a raw record', '#/agents/texts/1?raw=on', ['member', 'value', 'item']],
    ['a span', '#/agents/texts/2', ['span-name', 'service-name', 'status-message', 'attribute-key']],
    ['a log record', '#/agents/texts/3', ['log-body', 'service-name', 'severity-text', 'attribute-value']],
    ['a trace', `#/traces/${trace}?from=`, ['span-name', 'log-body', 'severity-text', 'status-message']],
    ['live records', '#/agents/texts/live?from=0', ['value', 'changed']],
    ['live records, pretty', '#/agents/texts/live?from=0&pretty=on', ['value', 'changed']],
    ['live records of all agents', '#/live?minutes=60', ['value', 'changed']],
    ['Home', '#/home', ['value', 'changed']],
    ['the rules of an agent', '#/agents/texts/rules', ['field', 'wanted']],
    ['a proposal', '#/proposals/p_1_decided', ['field', 'wanted', 'item']],
    ['a moment', '#/agents/texts/time', ['value', 'changed']],
    ['the settings of an agent', '#/agents/texts/settings', []],
    ['the keys', '#/keys', ['key-name']],
    ['a user', '#/users/ada@example.com', ['claim', 'claim-value']],
    ['an agent that does not exist', `#/agents/${encodeURIComponent(planted('absent'))}`, ['absent']],
    ['a search for keys', `#/keys/${encodeURIComponent(planted('search'))}`, []],
  ])('is shown in %s', async (_name, at, labels) => {
    const { page } = await openSignedIn(server.url, { at, allowed: 'Failed to load resource' })
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await expectShown(page, labels)
  })

  it('is shown in the palette', async () => {
    const { page } = await openSignedIn(server.url)
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog').getByRole('combobox').fill('key-name')
    await expectShown(page, ['key-name'])
    await page.getByRole('dialog').getByRole('combobox').fill(planted('nothing'))
    await expectShown(page, ['nothing'])
  })

  it('is shown in a response on the page of the API', async () => {
    const { body } = await checkedCall(server, 'POST /v1/agents/texts/query', {
      body: { type: 'latest', order: 'asc', limit: 1, types: ['record'] },
    })
    const { page } = await openSignedIn(server.url)
    await page.getByRole('link', { name: 'API', exact: true }).click()
    const article = page.locator('article#getAgentRecord')
    await article.locator('.try summary').first().click()
    await article.getByLabel('agent', { exact: true }).fill('texts')
    await article.getByLabel('hash', { exact: true }).fill(body.records[0].record_id)
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result > p').getByText('200 OK').waitFor()
    await expectShown(page, ['member', 'value', 'item'])
  })

  it('is shown in Verify, in the name of a file and of the agent that it names', async () => {
    // Without the genesis record, the manifest alone names the agent.
    const { text } = await checkedCall(server, 'GET /v1/strand/export?agent=texts&from_seq=1')
    const forged = text.replace('"agent":"texts"', `"agent":${JSON.stringify(planted('named'))}`)
    const saved = { agent: planted('saved'), strand: 'x', public_key: planted('key'), checkpoint: 'x' }
    const { page } = await openConsole(server.url, { at: '#/verify' })
    const drop = (name: string, body: string) =>
      page
        .getByLabel('Drop a file here, or choose one')
        .setInputFiles({ name, mimeType: 'application/x-ndjson', buffer: Buffer.from(body) })
    await drop(planted('file-name'), forged)
    await verdict(page)
    await expectShown(page, ['file-name', 'named'])
    await drop('saved.json', JSON.stringify(saved))
    await expectShown(page, ['saved'])
  })
})
