import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApiKey, WhoAmI } from '../../src/client/index.js'
import { approversOf } from '../../src/console/agents/changes/approvers.js'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

describe('the possible approvers of a change of an agent', () => {
  const key = (name: string, more: Partial<ApiKey> = {}): ApiKey => ({
    key_id: name,
    name,
    scopes: ['proposals:decide'],
    agents: [],
    expires_at_ms: null,
    created_at_ms: 1,
    made_by: 'root',
    line: name,
    last_used_at_ms: null,
    ...more,
  })
  const keys = [
    key('own'),
    key('of-own-lineage', { line: 'own' }),
    key('decides'),
    key('expired', { expires_at_ms: 100 }),
    key('reads', { scopes: ['records:read'] }),
    key('of-roofs', { agents: ['roof-*'] }),
    key('of-others', { agents: ['boiler', 'cellar-*'] }),
    key('admin', { scopes: ['admin:*'] }),
    key('of-admin', { scopes: ['admin:*'], line: 'admin' }),
  ]
  const who = (principal: string): WhoAmI => ({
    principal,
    kind: principal === 'root' ? 'root' : 'api_key',
    scopes: ['admin:*'],
    agents: [],
    name: null,
    made_by: null,
    created_at_ms: null,
    expires_at_ms: null,
    user: null,
  })
  const approvers = (principal: string, zone: 'governed' | 'protected' | 'immutable_core') =>
    approversOf(keys, { who: who(principal), agent: 'roof-1', zone, nowMs: 100 })

  it('are keys of other lineages that can decide about it', () => {
    expect(approvers('own', 'protected')).toEqual({
      names: ['the root key', '“decides”', '“of-roofs”', '“admin”', '“of-admin”'],
      lineages: 4,
      needed: 1,
    })
    expect(approvers('root', 'protected')?.names).toEqual([
      '“own”',
      '“of-own-lineage”',
      '“decides”',
      '“of-roofs”',
      '“admin”',
      '“of-admin”',
    ])
  })

  it('are keys with admin:* in zone immutable_core, where keys of one lineage count once', () => {
    expect(approvers('root', 'immutable_core')).toEqual({
      names: ['“admin”', '“of-admin”'],
      lineages: 1,
      needed: 2,
    })
    expect(approvers('own', 'immutable_core')?.lineages).toBe(2)
  })

  it('are undefined if no approval is needed', () => {
    expect(approvers('own', 'governed')).toBeUndefined()
  })
})

describe.skipIf(noBrowser)('changes of an agent in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '45' } })
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (agent: string, { zone = 'free', key = server.rootKey } = {}): Promise<Page> => {
    await newAgent(server, agent, zone)
    await writeMany(server, agent, [{ n: 1 }])
    const { page } = await openSignedIn(server.url, { at: `#/agents/${agent}/agent`, key })
    await page.getByRole('heading', { name: 'When a change takes effect' }).waitFor()
    return page
  }
  const statusOf = async (agent: string) => (await call(server, `GET /v1/agents/${agent}/status`)).body
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const choose = (page: Page, zone: string) =>
    page.getByRole('radio', { name: new RegExp(`^${zone}`) }).check()
  const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent)

  it('changes the zone immediately in zone free, and links to its record', async () => {
    const page = await open('loose')
    await page.getByText('Zone free: the change takes effect immediately').waitFor()
    await expect.poll(() => page.getByRole('button', { name: 'Change zone' }).isDisabled()).toBe(true)
    await choose(page, 'governed')
    await press(page, 'Change zone')
    await page.getByText('Changing the zone back is delayed as well').waitFor()
    await press(page, 'Cancel')
    expect((await statusOf('loose')).zone).toBe('free')
    await press(page, 'Change zone')
    await press(page, 'Change to governed')
    await page.getByText('The agent is now in zone governed').waitFor()
    expect((await statusOf('loose')).zone).toBe('governed')
    await expect.poll(() => focused(page)).toBe('Done')
    await page.keyboard.press('Enter')
    await page.getByText('which is applied automatically after 45 s').waitFor()
    await expect.poll(() => focused(page)).toBe('Zone')
    await page.goto(`${server.url}/console#/agents/loose/2`)
    await page.getByRole('dialog').getByText('sys/zone', { exact: true }).waitFor()
  })

  it('makes a proposal if the zone requires one, links to it, and shows that it is pending', async () => {
    const page = await open('pending', { zone: 'governed' })
    await choose(page, 'free')
    await press(page, 'Change zone')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('which is applied automatically after 45 s').waitFor()
    await dialog.getByText('All other open proposals of the agent').waitFor()
    await press(page, 'Propose change')
    await page.getByText('The change is now a pending proposal').waitFor()
    expect((await statusOf('pending')).zone).toBe('governed')
    await press(page, 'Done')
    await page.getByText('A proposal is already pending').waitFor()
    expect(await page.getByRole('button', { name: 'Change zone' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Change the zone to free' }).click()
    await page.getByRole('heading', { name: 'Change the zone to free' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/proposals/p_2_pending')
  })

  it('requires the name to be typed before a change to immutable_core', async () => {
    const page = await open('forever')
    await choose(page, 'immutable_core')
    await press(page, 'Change zone')
    await page.getByText('can no longer be erased').waitFor()
    await page.getByText('you could not move the agent out of that zone again').waitFor()
    const button = page.getByRole('button', { name: 'Change to immutable_core', exact: true })
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill('never')
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill('forever')
    await button.click()
    await page.getByText('The agent is now in zone immutable_core').waitFor()
    await press(page, 'Done')
    await page.getByText('takes effect when two keys with admin:* approve it').waitFor()
    await page.getByText('No existing key can approve it').waitFor()
  })

  it('changes the key after its digits are typed, and shows the new one', async () => {
    const page = await open('keyed')
    const { public_key: before } = await statusOf('keyed')
    await press(page, 'Change key')
    await page.getByText('This cannot be undone').waitFor()
    await page.getByText('Verifiers that trust the old key accept the new one').waitFor()
    await page.getByLabel('The old key may be compromised').check()
    await page.getByText('give them the new key and the strand').waitFor()
    const button = page.getByRole('button', { name: 'Change key permanently' })
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill(before.slice(-8))
    await button.click()
    await page.getByText('New records are signed with the key below').waitFor()
    const { public_key: after } = await statusOf('keyed')
    expect(after).not.toBe(before)
    await page.getByRole('dialog').getByText(after).waitFor()
    await press(page, 'Done')
    await page.locator('.agent-changes').getByText(after).waitFor()
    await expect.poll(() => focused(page)).toBe('Key')
    const body = { type: 'time_range', types: ['sys/key_rotate'] }
    const { records } = (await call(server, 'POST /v1/agents/keyed/query', { body })).body
    expect(records[0].payload).toMatchObject({ public_key: after, reason: 'compromise' })
  })

  it('names the possible approvers, and makes the proposal of a key that cannot read proposals', async () => {
    const keeper = await scopedKey(server, ['agents:admin', 'records:read'])
    await scopedKey(server, ['proposals:decide'])
    const byRoot = await open('guarded', { zone: 'protected' })
    await byRoot.getByText('Possible approvers: “test”').waitFor()
    const { page, allow } = await openSignedIn(server.url, { at: '#/agents/guarded/agent', key: keeper.key })
    await page.getByText('when another key with proposals:decide approves it').waitFor()
    expect(await page.getByText('Possible approvers').count()).toBe(0)
    await press(page, 'Change key')
    const { public_key: key } = await statusOf('guarded')
    const propose = async (): Promise<void> => {
      await page.getByLabel('To confirm, type').fill(key.slice(-8))
      await press(page, 'Propose change')
    }
    await propose()
    await page.getByText('The change is now a pending proposal').waitFor()
    await press(page, 'Done')
    // The key cannot read the pending proposal, so the server answers 409, which the browser reports.
    allow('status of 409')
    await press(page, 'Change key')
    await propose()
    await page.getByText('A proposal to change this is already pending').waitFor()
    expect(await page.getByRole('link', { name: 'Open the proposal' }).getAttribute('href')).toBe(
      '#/proposals/p_2_guarded',
    )
    expect((await statusOf('guarded')).public_key).toBe(key)
  })

  it('names the missing scope, and does not change agents of the server', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const page = await open('seen', { key })
    expect(await page.getByText('needs agents:admin').count()).toBe(2)
    await expect.poll(() => page.getByRole('button', { name: 'Change key' }).isDisabled()).toBe(true)
    await page.goto(`${server.url}/console#/agents/${encodeURIComponent('server::log')}/agent`)
    await page.getByText('This agent belongs to the server').waitFor()
  })

  it('has seven tabs, which work with the arrow keys and fit a phone', async () => {
    const page = await open('tabbed')
    await page.setViewportSize({ width: 360, height: 800 })
    const tabs = page.getByRole('tab')
    const names = await tabs.allTextContents()
    expect(names.filter((name) => name !== 'Rules')).toEqual([
      'Records',
      'Live',
      'Time',
      'Proof',
      'Graph',
      'Settings',
    ])
    await page.getByRole('tab', { name: 'Settings' }).focus()
    for (const name of names) {
      await page.keyboard.press('ArrowRight')
      await page.getByRole('tab', { name, exact: true, selected: true }).waitFor()
      await expect.poll(() => focused(page)).toBe(name)
    }
    const boxes = await Promise.all((await tabs.all()).map((tab) => tab.boundingBox()))
    for (const box of boxes) expect((box?.x ?? 999) + (box?.width ?? 0)).toBeLessThanOrEqual(360)
  })

  it('is accessible by axe and fits, with its confirmations', async () => {
    const page = await open('accessible', { zone: 'protected' })
    await page.getByText('Possible approvers').or(page.getByText('No existing key can approve it')).waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await choose(page, 'immutable_core')
    await press(page, 'Change zone')
    await page.getByLabel('To confirm, type').waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.keyboard.press('Escape')
    await press(page, 'Change key')
    await page.getByLabel('The old key may be compromised').check()
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
