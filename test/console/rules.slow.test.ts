import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { readClaims } from '../../src/console/agents/rules/claims.js'
import { draftsOf, rulesOfDrafts, rulesOfText, textOfRules } from '../../src/console/agents/rules/draft.js'
import { signUp, subjectOf } from '../support/auth/users.js'
import { axeFindings, type ConsolePage, openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestServer, call } from '../support/server/server.js'

const values = ['$jwt.sub', 'a, b', '', 1.5, -1e21, true, false, null, { a: [1] }, ['a', 1]]
const lists = [['a', 'b'], ['$jwt.email'], ['a,b'], [' a'], [''], [], [1, 2], [null]]

describe('rules as rows and as a text', () => {
  const cases = [
    ...values.map((value) => ({ op: 'eq', value })),
    ...lists.map((value) => ({ op: 'in', value })),
  ]
  it.each(cases)('are the same both ways: $op $value', ({ op, value }) => {
    const read = rulesOfText(
      JSON.stringify([{ actions: ['read'], conditions: [{ field: 'a.b', op, value }] }]),
    )
    if ('fault' in read) throw new Error(read.fault)
    expect(rulesOfDrafts(draftsOf(read.policies))).toEqual(read)
    expect(rulesOfText(textOfRules(read.policies))).toEqual(read)
  })

  it('keep their types', () => {
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
  ])('are refused as %s', (text, fault) => {
    expect(rulesOfText(text)).toEqual({ fault: expect.stringContaining(fault) })
  })

  it('take the claims of a token, and no others', () => {
    const claims = { sub: 'usr_1', email: 'a@b.c', app_metadata: { team: 'x' }, user_metadata: {} }
    expect(readClaims(JSON.stringify({ ...claims, iat: 1, amr: ['pwd'] }))).toEqual({ claims })
    expect(readClaims('{"sub":"usr_1","email":"a@b.c"}')).toMatchObject({ claims: { user_metadata: {} } })
    for (const wrong of ['', '[]', '{"sub":1,"email":"a@b.c"}', '{"sub":"a","email":"b","app_metadata":1}'])
      expect(readClaims(wrong)).toEqual({ fault: expect.stringContaining('Expected') })
  })
})

describe.skipIf(noBrowser)('rules in the console', () => {
  let server: TestServer
  let browser: Browser
  let ada: string
  let opened: ConsolePage | undefined

  beforeAll(async () => {
    server = await startAuthServer()
    browser = await sharedBrowser()
    ada = subjectOf(await signUp(server, 'ada@example.com', { app: { team: 'blue' } }))
    await signUp(server, 'adam@example.com')
    for (const name of ['notes', 'long', 'empty', 'quiet', 'keys']) await newAgent(server, name)
    await newAgent(server, 'guarded', 'protected')
    await call(server, 'PUT /v1/agents/notes/policies', {
      body: {
        policies: [{ actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }],
      },
    })
    await writeMany(server, 'notes', [
      { owner: ada, text: 'hers' },
      { owner: 'usr_other', team: 'blue', text: 'of her team' },
      { team: 'red', text: 'of nobody' },
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

  afterEach(async () => {
    const complaints = opened?.complaints ?? []
    await opened?.context.close()
    opened = undefined
    expect(complaints).toEqual([])
  })

  const open = async (agent: string, key?: string): Promise<Page> => {
    const at = `#/agents/${agent}/rules`
    opened = await openSignedIn(browser, server.url, key === undefined ? { at } : { at, key })
    return opened.page
  }
  const json = (page: Page) => page.getByLabel('The same as JSON')
  const summary = (page: Page) => page.getByRole('status').filter({ hasText: /^Saved rules/ })
  const saidOf = async (page: Page, seq: number): Promise<string[]> => {
    const cells = page
      .getByRole('table', { name: 'Tried records' })
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: String(seq), exact: true }) })
    return (await cells.getByRole('cell').allInnerTexts()).slice(0, -2)
  }
  const tryAs = async (page: Page, email: string): Promise<void> => {
    await page.getByLabel('User, by the beginning of the e-mail').fill(email)
    await page.getByText(`The claims of a token that ${email} would get now`).waitFor()
    await page.getByRole('button', { name: 'Try on the last 200 records' }).click()
    await summary(page).waitFor()
  }

  it('says what to do where there is no rule, and adds one that shows users their own', async () => {
    const page = await open('quiet')
    await page.getByText('No rule yet').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
    await page.getByRole('button', { name: 'Add a rule' }).click()
    expect(JSON.parse(await json(page).inputValue())).toEqual([
      { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
    ])
    await page.getByText('Not saved').waitFor()
    await page.getByRole('button', { name: 'Undo the changes' }).click()
    await page.getByText('No rule yet').waitFor()
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByText('they hold at once').waitFor()
    await page.getByText('Comes: ').waitFor()
    await page.getByRole('button', { name: 'Save the rules' }).click()
    await page.getByText('The rules hold from now on').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    const { body } = await call(server, 'GET /v1/agents/quiet/policies')
    expect(body.policies).toHaveLength(1)
    await expect.poll(() => page.getByRole('button', { name: 'Save…' }).isDisabled()).toBe(true)
  })

  it('changes rows and text together, and names what the server would refuse or warn of', async () => {
    const page = await open('notes')
    const rule = page.getByRole('group', { name: 'Rule 1: users may' })
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
    await page.getByText('users reach nothing of this agent any more').waitFor()
    await page.getByRole('button', { name: 'Go on editing' }).click()
  })

  it('tries the saved and the edited rules as a user, and says which rule and condition decided', async () => {
    const page = await open('notes')
    await tryAs(page, 'ada@example.com')
    expect(await summary(page).textContent()).toBe('Saved rules: 1 of 5 records allowed, the others hidden.')
    expect(await saidOf(page, 2)).toEqual(['allowed\nrule 1: "owner" is "$jwt.sub"'])
    expect(await saidOf(page, 3)).toEqual(['hidden\nrule 1 wants: "owner" is "$jwt.sub"; it is "usr_other"'])
    expect(await saidOf(page, 4)).toEqual(['hidden\nrule 1 wants: "owner" is "$jwt.sub"; it is not there'])
    await page.getByRole('button', { name: 'Add a rule' }).click()
    const rule = page.getByRole('group', { name: 'Rule 2: users may' })
    await rule.getByLabel('Field').fill('team')
    await rule.getByLabel('Value', { exact: true }).fill('$jwt.app_metadata.team')
    await summary(page)
      .filter({ hasText: 'Edited rules: 2 of 5 records allowed; 1 record changed.' })
      .waitFor()
    expect(await saidOf(page, 3)).toEqual([
      'hidden\nrule 1 wants: "owner" is "$jwt.sub"; it is "usr_other"',
      'allowed changed\nrule 2: "team" is "$jwt.app_metadata.team"',
    ])
    await page.getByLabel('Only records that the edited rules change').check()
    expect(await page.getByRole('table', { name: 'Tried records' }).getByRole('rowheader').count()).toBe(1)
    await page.getByLabel('Claims of the token').fill('{"sub":"usr_other","email":"o@example.com"}')
    await summary(page).filter({ hasText: 'Edited rules: 1 of 5 records allowed; 0 records' }).waitFor()
    await page.getByLabel('Only records that the edited rules change').uncheck()
    expect((await saidOf(page, 4))[1]).toContain('rule 2: the token has no "$jwt.app_metadata.team"')
    await page.getByLabel('Delete and restore').check()
    await summary(page)
      .filter({ hasText: 'No saved rule is about delete: the server answers 403.' })
      .waitFor()
    await page.getByLabel('Claims of the token').fill('{"sub":"usr_other"}')
    await page.getByText('Expected the texts sub and email').waitFor()
    const { body } = await call(server, 'GET /v1/agents/notes/policies')
    expect(body.policies).toHaveLength(1)
  })

  it('reads the last two hundred records, of which there are more, and none where there are none', async () => {
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

  it('proposes the rules where the zone wants it, and leads to the proposal', async () => {
    const page = await open('guarded')
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    await page.getByText('when somebody else with proposals:decide approves it').waitFor()
    await page.getByRole('button', { name: 'Propose the rules' }).click()
    await page.getByText('It waits as a proposal').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    opened?.allow('status of 409')
    await page.getByRole('button', { name: 'Propose the rules' }).click()
    await page.getByText('A proposal of other rules for this agent waits already').waitFor()
  })

  it('does not replace rules that somebody else has changed meanwhile', async () => {
    const page = await open('empty')
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('button', { name: 'Save…' }).click()
    const other = [{ actions: ['write'], conditions: [] }]
    await call(server, 'PUT /v1/agents/empty/policies', { body: { policies: other } })
    await page.getByRole('button', { name: 'Save the rules' }).click()
    await page.getByText('Somebody has changed the rules since').waitFor()
    const { body } = await call(server, 'GET /v1/agents/empty/policies')
    expect(body.policies).toEqual(other)
  })

  it('says which scopes are missing', async () => {
    const reader = await scopedKey(server, ['records:read'])
    const page = await open('notes', reader.key)
    await page.getByText('This key may not see the rules').waitFor()
    await opened?.context.close()
    const admin = await scopedKey(server, ['records:read', 'agents:admin'])
    const other = await open('notes', admin.key)
    await other.getByText('Choosing a user needs admin:*').waitFor()
    await other.getByLabel('Claims of the token').fill(`{"sub":"${ada}","email":"ada@example.com"}`)
    await other.getByRole('button', { name: 'Try on the last 200 records' }).click()
    await summary(other).filter({ hasText: '1 of 5 records allowed' }).waitFor()
  })

  it('is used by the keyboard alone, and the focus is never lost', async () => {
    const page = await open('keys')
    await page.getByText('No rule yet').waitFor()
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    const tabTo = async (name: string, key = 'Tab'): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        if ((await focused()) === name) return
        await page.keyboard.press(key)
      }
      throw new Error(`The key ${key} does not lead to ${name}`)
    }
    await tabTo('Add a rule')
    await page.keyboard.press('Enter')
    await tabTo('Remove', 'Shift+Tab')
    await page.keyboard.press('Enter')
    await page.getByText('every record', { exact: true }).waitFor()
    await expect.poll(focused).toBe('Add a condition')
    await tabTo('Remove rule 1')
    await page.keyboard.press('Enter')
    await page.getByText('No rule yet').waitFor()
    await expect.poll(focused).toBe('Add a rule')
    await page.keyboard.press('Enter')
    await tabTo('Save…')
    await page.keyboard.press('Enter')
    await tabTo('Save the rules')
    await page.keyboard.press('Enter')
    await page.getByText('The rules hold from now on').waitFor()
    await tabTo('Done')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(focused).toMatch(/^Keys reach every record/)
    const { body } = await call(server, 'GET /v1/agents/keys/policies')
    expect(body.policies).toHaveLength(1)
  })

  it('is accessible by axe and fits, with its dialog and what was tried', async () => {
    const page = await open('notes')
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByRole('group', { name: 'Rule 2: users may' }).getByLabel('Field').fill('team')
    await tryAs(page, 'ada@example.com')
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Save…' }).click()
    expect(await axeFindings(page)).toEqual([])
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
