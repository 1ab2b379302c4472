import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readClaims } from '../../src/console/agents/rules/claims.js'
import { draftsOf, rulesOfDrafts, rulesOfText, textOfRules } from '../../src/console/agents/rules/draft.js'
import { signUp, subjectOf } from '../support/auth/users.js'
import { axeFindings, type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

const values = ['$jwt.sub', 'a, b', '', 1.5, -1e21, true, false, null, { a: [1] }, ['a', 1]]
const lists = [['a', 'b'], ['$jwt.email'], ['a,b'], [' a'], [''], [], [1, 2], [null]]

describe('rules as rows and as text', () => {
  const cases = [
    ...values.map((value) => ({ op: 'eq', value })),
    ...lists.map((value) => ({ op: 'in', value })),
  ]
  it.each(cases)('survive the conversion in both directions: $op $value', ({ op, value }) => {
    const read = rulesOfText(
      JSON.stringify([{ actions: ['read'], conditions: [{ field: 'a.b', op, value }] }]),
    )
    if ('fault' in read) throw new Error(read.fault)
    expect(rulesOfDrafts(draftsOf(read.policies))).toEqual(read)
    expect(rulesOfText(textOfRules(read.policies))).toEqual(read)
  })

  it('preserve their types', () => {
    const rule = { actions: ['read'], conditions: [], types: ['auth/*', 'note'] }
    const read = rulesOfText(JSON.stringify([rule]))
    if ('fault' in read) throw new Error(read.fault)
    expect(read.policies).toEqual([rule])
    expect(rulesOfDrafts(draftsOf(read.policies))).toEqual(read)
  })

  it.each([
    ['{', 'Expected one JSON value'],
    ['{}', 'Expected a list of rules'],
    ['[1]', 'Rule 1: Expected an object of actions, conditions and types'],
    ['[{"actions":["read"],"conditions":[],"types":[]}]', 'Rule 1: Expected types to be'],
    ['[{"actions":["read"],"conditions":[],"types":["A"]}]', 'Rule 1: Expected types to be'],
    ['[{"actions":["read"],"conditions":[],"name":"x"}]', 'Rule 1: Expected an object of'],
    ['[{"actions":[],"conditions":[]}]', 'Rule 1: Expected actions of read, write, delete and erase'],
    ['[{"actions":["read","destroy"],"conditions":[]}]', 'Rule 1: Expected actions of'],
    [
      '[{"actions":["read"],"conditions":[{"field":"a","op":"like","value":1}]}]',
      'Rule 1: Expected condition 1',
    ],
    ['[{"actions":["read"],"conditions":[{"field":"a","op":"eq"}]}]', 'Rule 1: Expected condition 1'],
    ['[{"actions":["read"],"actions":["write"],"conditions":[]}]', 'Expected no duplicate keys'],
    [
      '[{"actions":["read"],"conditions":[{"field":"a","op":"eq","value":{"__proto__":1}}]}]',
      'Expected no key named __proto__',
    ],
    ['[{"actions":["read"],"conditions":[{"field":"a","op":"eq","value":1e999}]}]', 'finite'],
  ])('are refused if invalid: %s', (text, fault) => {
    expect(rulesOfText(text)).toEqual({ fault: expect.stringContaining(fault) })
  })

  it('accept the claims of a token, and drop others', () => {
    const claims = { sub: 'usr_1', email: 'a@b.c', app_metadata: { team: 'x' }, user_metadata: {} }
    expect(readClaims(JSON.stringify({ ...claims, iat: 1, amr: ['pwd'] }))).toEqual({ claims })
    expect(readClaims('{"sub":"usr_1","email":"a@b.c"}')).toMatchObject({ claims: { user_metadata: {} } })
    for (const wrong of ['', '[]', '{"sub":1,"email":"a@b.c"}', '{"sub":"a","email":"b","app_metadata":1}'])
      expect(readClaims(wrong)).toEqual({ fault: expect.stringContaining('Expected') })
  })
})

describe.skipIf(noBrowser)('rules in the console', () => {
  let server: TestServer
  let token: string
  let ada: string
  let opened: ConsolePage

  beforeAll(async () => {
    server = await startAuthServer({ env: { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '5' } })
    token = await signUp(server, 'ada@example.com', { app: { team: 'blue' } })
    ada = subjectOf(token)
    await signUp(server, 'adam@example.com')
    for (const name of ['notes', 'long', 'empty', 'quiet', 'keys']) await newAgent(server, name)
    for (const name of ['guarded', 'contested']) await newAgent(server, name, 'protected')
    await newAgent(server, 'delayed', 'governed')
    await call(server, 'PUT /v1/agents/notes/policies', {
      body: {
        policies: [{ actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }],
      },
    })
    await writeMany(server, 'notes', [
      { owner: ada, text: 'hers' },
      { owner: 'usr_other', team: 'blue', text: 'of her team' },
      { team: 'red', text: 'without an owner' },
    ])
    await writeMany(
      server,
      'long',
      Array.from({ length: 250 }, (_none, at) => ({ even: at % 2 === 0 })),
    )
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (agent: string, key?: string): Promise<Page> => {
    const at = `#/agents/${agent}/rules`
    opened = await openSignedIn(server.url, { at, key })
    return opened.page
  }
  const json = (page: Page) => page.getByLabel('Rules as JSON')
  const summary = (page: Page) => page.getByRole('status').filter({ hasText: /^Saved rules/ })
  const judgementsOf = async (page: Page, seq: number): Promise<string[]> => {
    const cells = page
      .getByRole('table', { name: 'Tried records' })
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: String(seq), exact: true }) })
    return (await cells.getByRole('cell').allInnerTexts()).slice(0, -2)
  }
  const tryAs = async (page: Page, email: string): Promise<void> => {
    await page.getByLabel('User, by e-mail prefix').fill(email)
    await page.getByText(`The claims of a new token of ${email}`).waitFor()
    await page.getByRole('button', { name: 'Try on the last 200 records' }).click()
    await summary(page).waitFor()
  }

  it('explains what to do without rules, and adds a rule for the records of each user', async () => {
    const page = await open('quiet')
    await page.getByText('No rules yet').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Add rule' }).click()
    expect(JSON.parse(await json(page).inputValue())).toEqual([
      { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
    ])
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Discard changes' }).click()
    await page.getByText('No rules yet').waitFor()
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByText('the rules take effect immediately').waitFor()
    await page.getByText('Added: ').waitFor()
    await page.getByRole('button', { name: 'Save rules' }).click()
    await page.getByText('The rules are in effect').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    const { body } = await call(server, 'GET /v1/agents/quiet/policies')
    expect(body.policies).toHaveLength(1)
    await expect.poll(() => page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
  })

  it('changes rows and text together, and shows the faults and warnings of the server', async () => {
    const page = await open('notes')
    const rule = page.getByRole('group', { name: 'Rule 1: users can' })
    await rule.getByLabel('write').check()
    await rule.getByLabel('Value', { exact: true }).fill('$jwt.email')
    expect(JSON.parse(await json(page).inputValue())).toMatchObject([
      { actions: ['read', 'write'], conditions: [{ value: '$jwt.email' }] },
    ])
    await page.getByText('/policies/0/conditions/0 compares with $jwt.email').waitFor()
    await rule.getByLabel('Value', { exact: true }).fill('$jwt.role')
    await page.getByText('/policies/0/conditions/0/value: Expected a value that begins with').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
    await json(page).fill('[{"actions":["delete"],"conditions":[{"field":"n","op":"lt","value":2}]}')
    await page.getByText('Expected one JSON value').waitFor()
    await expect.poll(() => rule.getByLabel('delete').isDisabled()).toBe(true)
    await json(page).fill('[{"actions":["delete"],"conditions":[{"field":"n","op":"lt","value":2}]}]')
    await expect.poll(() => rule.getByLabel('delete').isChecked()).toBe(true)
    expect(await rule.getByLabel('Type of the value').inputValue()).toBe('number')
    await rule.getByLabel('Value', { exact: true }).fill('two')
    await page.getByText('Rule 1: Expected a number for n, got “two”').waitFor()
    await rule.getByRole('button', { name: 'Remove this condition' }).click()
    await page.getByText('every record', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Remove rule 1' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByText('users can no longer access this agent').waitFor()
    await page.getByRole('button', { name: 'Keep editing' }).click()
  })

  it('tries the saved and the edited rules as a user, and names the deciding rule and condition', async () => {
    const page = await open('notes')
    await tryAs(page, 'ada@example.com')
    expect(await summary(page).textContent()).toBe('Saved rules: 1 of 5 records allowed, the others hidden.')
    expect(await judgementsOf(page, 2)).toEqual(['allowed\nrule 1: "owner" is "$jwt.sub"'])
    expect(await judgementsOf(page, 3)).toEqual([
      'hidden\nrule 1 requires: "owner" is "$jwt.sub"; the value is "usr_other"',
    ])
    expect(await judgementsOf(page, 4)).toEqual([
      'hidden\nrule 1 requires: "owner" is "$jwt.sub"; the value is missing',
    ])
    await page.getByRole('button', { name: 'Add rule' }).click()
    const rule = page.getByRole('group', { name: 'Rule 2: users can' })
    await rule.getByLabel('Field').fill('team')
    await rule.getByLabel('Value', { exact: true }).fill('$jwt.app_metadata.team')
    await summary(page)
      .filter({ hasText: 'Edited rules: 2 of 5 records allowed; 1 record changed.' })
      .waitFor()
    expect(await judgementsOf(page, 3)).toEqual([
      'hidden\nrule 1 requires: "owner" is "$jwt.sub"; the value is "usr_other"',
      'allowed changed\nrule 2: "team" is "$jwt.app_metadata.team"',
    ])
    await page.getByLabel('Only records with another result under the edited rules').check()
    expect(await page.getByRole('table', { name: 'Tried records' }).getByRole('rowheader').count()).toBe(1)
    await page.getByLabel('Claims of the token').fill('{"sub":"usr_other","email":"o@example.com"}')
    await summary(page).filter({ hasText: 'Edited rules: 1 of 5 records allowed; 0 records' }).waitFor()
    await page.getByLabel('Only records with another result under the edited rules').uncheck()
    expect((await judgementsOf(page, 4))[1]).toContain('rule 2: the token has no "$jwt.app_metadata.team"')
    await page.getByLabel('Delete and restore').check()
    await summary(page).filter({ hasText: 'No saved rule covers delete: the server returns 403.' }).waitFor()
    await page.getByLabel('Claims of the token').fill('{"sub":"usr_other"}')
    await page.getByText('Expected sub and email to be strings').waitFor()
    const { body } = await call(server, 'GET /v1/agents/notes/policies')
    expect(body.policies).toHaveLength(1)
  })

  it('reads only the last 200 records of a longer strand', async () => {
    const page = await open('long')
    await tryAs(page, 'adam@example.com')
    expect(await summary(page).textContent()).toMatch(/^Saved rules: 0 of 200 records allowed/)
    await json(page).fill('[{"actions":["read"],"conditions":[{"field":"even","op":"eq","value":true}]}]')
    await summary(page).filter({ hasText: 'Edited rules: 100 of 200 records allowed; 100' }).waitFor()
    const seqs = await page
      .getByRole('table', { name: 'Tried records' })
      .getByRole('rowheader')
      .allTextContents()
    expect([seqs.length, seqs[0], seqs.at(-1)]).toEqual([200, '250', '51'])
  })

  const proposeRule = async (page: Page): Promise<void> => {
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByRole('button', { name: 'Propose rules' }).click()
    await page.getByText('The change is now a pending proposal').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
  }

  it('proposes the rules if the zone requires it, and says that they are not in force', async () => {
    const page = await open('guarded')
    await proposeRule(page)
    await page.getByText('New rules are proposed and not in force yet').waitFor()
    await page.getByText('when another key approves them').waitFor()
    await page.getByText('Proposed', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByText('Unsaved changes').waitFor()
    expect(await page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('link', { name: 'Open the proposal' }).click()
    await page.getByRole('heading', { name: 'Replace the rules for users' }).waitFor()
  })

  it('counts down to the rules that a zone delays, and shows them when they apply', async () => {
    const status = () => call(server, 'GET /v1/agents/delayed/status', { key: token })
    const page = await open('delayed')
    await proposeRule(page)
    const notice = page.getByText('New rules are proposed and not in force yet')
    await notice.waitFor()
    await page.getByRole('timer').filter({ hasText: 'Automatically in 0:0' }).waitFor()
    expect((await status()).body.code).toBe('policy_pending')
    await notice.waitFor({ state: 'detached' })
    await page.getByRole('group', { name: 'Rule 1: users can' }).waitFor()
    expect(await page.getByText('Unsaved changes').count()).toBe(0)
    expect((await status()).status).toBe(200)
  })

  it('reports a proposal that another user made in the meantime', async () => {
    const page = await open('contested')
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByText('when another key with proposals:decide approves it').waitFor()
    const other = { body: { policies: [{ actions: ['write'], conditions: [] }] } }
    expect((await call(server, 'PUT /v1/agents/contested/policies', other)).status).toBe(202)
    opened.allow('status of 409')
    await page.getByRole('button', { name: 'Propose rules' }).click()
    await page.getByText('A proposal to replace the rules of this agent is already pending').waitFor()
  })

  it('does not overwrite rules that were changed after the page loaded them', async () => {
    const page = await open('empty')
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    const other = [{ actions: ['write'], conditions: [] }]
    await call(server, 'PUT /v1/agents/empty/policies', { body: { policies: other } })
    await page.getByRole('button', { name: 'Save rules' }).click()
    await page.getByText('The rules were changed after this page loaded them').waitFor()
    const { body } = await call(server, 'GET /v1/agents/empty/policies')
    expect(body.policies).toEqual(other)
  })

  it('names the missing scopes', async () => {
    const reader = await scopedKey(server, ['records:read'])
    const page = await open('notes', reader.key)
    await page.getByText('This key cannot read the rules').waitFor()
    const admin = await scopedKey(server, ['records:read', 'agents:admin'])
    const other = await open('notes', admin.key)
    await other.getByText('Choosing a user needs admin:*').waitFor()
    await other.getByLabel('Claims of the token').fill(`{"sub":"${ada}","email":"ada@example.com"}`)
    await other.getByRole('button', { name: 'Try on the last 200 records' }).click()
    await summary(other).filter({ hasText: '1 of 5 records allowed' }).waitFor()
  })

  it('works with the keyboard alone, and never loses the focus', async () => {
    const page = await open('keys')
    await page.getByText('No rules yet').waitFor()
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    const tabTo = async (name: string, key = 'Tab'): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        if ((await focused()) === name) return
        await page.keyboard.press(key)
      }
      throw new Error(`The key ${key} does not lead to ${name}`)
    }
    await tabTo('Add rule')
    await page.keyboard.press('Enter')
    await tabTo('Remove', 'Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByText('every record', { exact: true }).waitFor()
    await expect.poll(focused).toBe('Add condition')
    await tabTo('Remove rule 1')
    await page.keyboard.press('Enter')
    await page.getByText('No rules yet').waitFor()
    await expect.poll(focused).toBe('Add rule')
    await page.keyboard.press('Enter')
    await tabTo('Save…')
    await page.keyboard.press('Enter')
    await tabTo('Save rules')
    await page.keyboard.press('Enter')
    await page.getByText('The rules are in effect').waitFor()
    await tabTo('Done')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(focused).toMatch(/^Keys can access every record/)
    const { body } = await call(server, 'GET /v1/agents/keys/policies')
    expect(body.policies).toHaveLength(1)
  })

  it('is accessible by axe and fits, with its dialog and the results of trying', async () => {
    const page = await open('notes')
    await page.getByRole('button', { name: 'Add rule' }).click()
    await page.getByRole('group', { name: 'Rule 2: users can' }).getByLabel('Field').fill('team')
    await tryAs(page, 'ada@example.com')
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Save…' }).click()
    expect(await axeFindings(page)).toEqual([])
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
