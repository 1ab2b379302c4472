import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ProposalView, WhoAmI } from '../../src/client/index.js'
import { approvalObstacle } from '../../src/console/parts/proposal-labels.js'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { createKeyAs, newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { proposeEverything, valuesIn } from '../support/server/every-proposal.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

const reads = { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] }
const writes = { actions: ['write'], conditions: [] }

describe('the right to approve a proposal', () => {
  const proposal: ProposalView = {
    proposal_id: 'p_3_sensors',
    agent: 'sensors',
    action: 'zone',
    target: null,
    target_seq: null,
    change: { zone: 'free' },
    zone: 'immutable_core',
    state: 'proposed',
    proposer: 'key_a',
    line: 'key_a',
    votes: [{ principal: 'key_b', line: 'key_b', vote: 'approve', at_ms: 20 }],
    created_at_ms: 10,
    effective_at_ms: null,
    expires_at_ms: 1_000,
    ended_at_ms: null,
    reason: null,
  }
  const key = (principal: string, more: Partial<WhoAmI> = {}): WhoAmI => ({
    principal,
    kind: 'api_key',
    scopes: ['admin:*'],
    agents: [],
    name: 'test',
    made_by: 'root',
    created_at_ms: 5,
    expires_at_ms: null,
    user: null,
    ...more,
  })

  it('needs another, older key of another lineage with the scope for the change', () => {
    expect(approvalObstacle(proposal, key('key_c'))).toBeUndefined()
    expect(
      approvalObstacle(proposal, key('root', { kind: 'root', made_by: null, created_at_ms: null })),
    ).toBeUndefined()
    expect(approvalObstacle(proposal, key('key_a'))).toContain('You proposed this')
    expect(approvalObstacle(proposal, key('key_d', { made_by: 'key_a' }))).toContain('have the same lineage')
    expect(approvalObstacle(proposal, key('key_c', { created_at_ms: 11 }))).toContain('created after')
    expect(approvalObstacle(proposal, key('key_c', { scopes: ['records:read'] }))).toContain(
      'needs proposals:decide',
    )
    expect(approvalObstacle(proposal, key('key_c', { scopes: ['proposals:decide'] }))).toContain(
      'Only a key with admin:*',
    )
    expect(approvalObstacle(proposal, key('key_b'))).toContain('You have already approved this')
    expect(approvalObstacle(proposal, key('key_e', { made_by: 'key_b' }))).toContain(
      'has already approved it',
    )
  })
})

describe.skipIf(noBrowser)('proposals in the console', () => {
  let server: TestServer
  /** A key that decides about the proposals of the root key. */
  let decider: string

  beforeAll(async () => {
    server = await startServer()
    decider = (await scopedKey(server, ['proposals:decide', 'records:read'])).key
    for (const zone of ['governed', 'protected', 'immutable_core']) await newAgent(server, zone, zone)
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key: string = decider): Promise<Page> => {
    return (await openSignedIn(server.url, { at, key })).page
  }
  const propose = async (agent: string, action: 'delete' | 'erase' = 'delete'): Promise<string> => {
    const [hash] = await writeMany(server, agent, [{ celsius: 21, place: 'roof' }])
    const path = `/v1/agents/${agent}/records/${hash}`
    const route = action === 'delete' ? `DELETE ${path}` : `POST ${path}/erase`
    const { status, body } = await call(server, route)
    expect(status).toBe(202)
    return body.proposal_id
  }
  const stateOf = async (id: string) => {
    const { body } = await call(server, `GET /v1/proposals?agent=${id.replace(/^p_\d+_/, '')}`)
    return body.proposals.find((one: { proposal_id: string }) => one.proposal_id === id)?.state
  }
  const rows = (page: Page) => page.getByRole('rowheader')

  it('explains empty lists', async () => {
    const page = await open('#/proposals')
    await page.getByText('No pending proposals').waitFor()
    await page.getByRole('link', { name: 'Mine' }).click()
    await page.getByText('You have no proposals').waitFor()
  })

  it('shows every member of the signed record of a proposal, for each action', async () => {
    const every = await startServer()
    onTestFinished(() => every.stop())
    const proposals = await proposeEverything(every)
    const { page } = await openSignedIn(every.url, { at: '#/proposals' })
    for (const { id, action, body } of proposals) {
      await page.goto(`${every.url}/console#/proposals/${encodeURIComponent(id)}`)
      const members = page.getByRole('region', { name: 'Changes' })
      await members.getByText(`"${action}"`, { exact: true }).waitFor()
      // What the tree has folded is there, but not visible.
      const text = (await members.textContent()) ?? ''
      const missing = valuesIn(body).filter((value) => !text.includes(JSON.stringify(value)))
      expect({ action, missing }).toEqual({ action, missing: [] })
    }
    const rules = proposals.find(({ action }) => action === 'policies')
    await page.goto(`${every.url}/console#/proposals/${encodeURIComponent(rules?.id ?? '')}`)
    await page.getByText(', of type sys/* or payroll').waitFor()
    const rotation = proposals.find(({ action }) => action === 'rotate_key')
    await page.goto(`${every.url}/console#/proposals/${encodeURIComponent(rotation?.id ?? '')}`)
    await page.getByText('will mark the old key as compromised').waitFor()
  })

  it('counts down to the time at which a change is applied automatically, and then lists it as decided', async () => {
    const quick = await startServer({ env: { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '9' } })
    onTestFinished(() => quick.stop())
    await newAgent(quick, 'quick', 'governed')
    const [hash] = await writeMany(quick, 'quick', [{ n: 1 }])
    await call(quick, `DELETE /v1/agents/quick/records/${hash}`)
    const { page } = await openSignedIn(quick.url, { at: '#/proposals' })
    await page
      .getByRole('timer')
      .filter({ hasText: /^Automatically in 0:0[1-9]$/ })
      .waitFor()
    await page.getByText('No pending proposals').waitFor()
    await page.getByRole('link', { name: 'Decided' }).click()
    await page.locator('.badge').getByText('applied').waitFor()
  })

  it('approves a proposal of another key after a confirmation, and links to each signed record', async () => {
    const id = await propose('protected')
    const page = await open('#/proposals')
    await page.getByRole('link', { name: 'Delete record 1', exact: true }).click()
    await page.getByText('"roof"').waitFor()
    expect(await page.getByRole('listitem').filter({ hasText: 'Proposed by Root key' }).count()).toBe(1)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByText('It takes effect immediately').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    expect(await stateOf(id)).toBe('proposed')
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    await page.getByRole('button', { name: 'Approve proposal' }).click()
    await page.getByText('it has taken effect').waitFor()
    expect(await stateOf(id)).toBe('applied')
    await page.getByText('Ended as applied').waitFor()
    const steps = await page.locator('.signed-steps li > span').allTextContents()
    expect(steps[0]).toBe('Proposed by Root key')
    expect(steps[1]).toMatch(/^Approved by Key …[0-9a-f]{8}$/)
    expect(steps.slice(2)).toEqual(['The change itself, sys/tombstone', 'Ended as applied'])
    await page.getByRole('link', { name: 'Record 5' }).click()
    await page.getByRole('dialog').getByText('sys/applied', { exact: true }).waitFor()
  })

  it('rejects a proposal, and lists it as rejected', async () => {
    const id = await propose('governed')
    const page = await open(`#/proposals/${id}`)
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    await page.getByText('The proposal ends without effect').waitFor()
    await page.getByRole('button', { name: 'Reject proposal' }).click()
    await page.getByText('You have rejected it').waitFor()
    expect(await stateOf(id)).toBe('rejected')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Decided' }).click()
    await page.locator('.badge').getByText('rejected').waitFor()
  })

  it('does not let a key approve its own proposal, but lets it withdraw the proposal', async () => {
    const id = await propose('protected')
    const page = await open('#/proposals/mine', server.rootKey)
    await rows(page).first().waitFor()
    await page.goto(`${server.url}/console#/proposals/${id}`)
    await page.getByText('You proposed this, so another key has to approve it').waitFor()
    await expect
      .poll(() => page.getByRole('button', { name: 'Approve', exact: true }).isDisabled())
      .toBe(true)
    await page.getByRole('button', { name: 'Withdraw' }).click()
    await page.getByRole('button', { name: 'Withdraw proposal' }).click()
    await page.getByText('You have withdrawn it').waitFor()
    expect(await stateOf(id)).toBe('cancelled')
  })

  it('explains why keys of the same lineage, and keys created after the proposal, cannot approve it', async () => {
    const maker = await scopedKey(server, ['admin:*'])
    const made = await createKeyAs(server, maker.key, { scopes: ['records:delete', 'proposals:decide'] })
    const [hash] = await writeMany(server, 'protected', [{ n: 1 }])
    const proposed = await call(server, `DELETE /v1/agents/protected/records/${hash}`, { key: made.key })
    const younger = await scopedKey(server, ['proposals:decide'])
    const at = `#/proposals/${proposed.body.proposal_id}`
    const ofLineage = await open(at, maker.key)
    await ofLineage.getByText('have the same lineage').waitFor()
    const ofYounger = await open(at, younger.key)
    await ofYounger.getByText('Your key was created after the proposal').waitFor()
    await ofYounger.getByText('reading it needs').waitFor()
  })

  it('shows changes of rules and of the zone as a diff', async () => {
    await newAgent(server, 'ruled')
    await call(server, 'PUT /v1/agents/ruled/policies', { body: { policies: [reads, writes] } })
    await call(server, 'PUT /v1/agents/ruled/zone', { body: { zone: 'protected' } })
    const deletes = { actions: ['delete'], conditions: [{ field: 'draft', op: 'exists', value: true }] }
    const policies = { policies: [deletes, reads] }
    const rules = await call(server, 'PUT /v1/agents/ruled/policies', { body: policies })
    const zone = await call(server, 'PUT /v1/agents/ruled/zone', { body: { zone: 'immutable_core' } })
    const page = await open(`#/proposals/${rules.body.proposal_id}`)
    await page.locator('.diff li').first().waitFor()
    expect(await page.locator('.diff li').allTextContents()).toEqual([
      '−Removed: write every record',
      '+Added: delete records whose "draft" exists',
      ' Unchanged: read records whose "owner" is "$jwt.sub"',
    ])
    await page.goto(`${server.url}/console#/proposals/${zone.body.proposal_id}`)
    await page.getByText('Removed: protected').waitFor()
    await page.getByText('Added: immutable_core').waitFor()
  })

  it('names keys to a key that can list keys, with links, and shows others their last digits', async () => {
    const create = async (name: string, scopes: string[]) =>
      (await call(server, 'POST /v1/admin/api-keys', { body: { name, scopes } })).body
    const proposer = await create('Night shift', ['records:delete', 'records:write'])
    const [hash] = await writeMany(server, 'protected', [{ n: 1 }])
    const { body } = await call(server, `DELETE /v1/agents/protected/records/${hash}`, { key: proposer.key })
    const admin = await open('#/proposals', server.rootKey)
    const named = admin.getByRole('row').filter({ hasText: 'Night shift' })
    await named.getByRole('link', { name: /^Delete record [0-9]+$/ }).waitFor()
    await admin.goto(`${server.url}/console#/proposals/${body.proposal_id}`)
    await admin.locator('.signed-steps').getByText('Proposed by Night shift').waitFor()
    await admin.getByRole('dialog').getByRole('link', { name: 'Night shift' }).first().click()
    await admin.getByRole('rowheader', { name: /^Night shift/ }).waitFor()
    expect(await admin.getByRole('rowheader').count()).toBe(1)
    const other = await open(`#/proposals/${body.proposal_id}`)
    await other
      .getByText(`Key …${proposer.key_id.slice(-8)}`)
      .first()
      .waitFor()
    expect(await other.getByText('Night shift').count()).toBe(0)
  })

  it('requires the digits of a record to be typed before its erasure is approved', async () => {
    const id = await propose('protected', 'erase')
    const page = await open(`#/proposals/${id}`)
    await page.getByRole('button', { name: 'Approve', exact: true }).click()
    const field = page.getByLabel('To confirm, type')
    const digits = await page.locator('.typed code').textContent()
    await field.fill('00000000')
    await expect.poll(() => page.getByRole('button', { name: 'Approve proposal' }).isDisabled()).toBe(true)
    await field.fill(digits ?? '')
    await page.getByRole('button', { name: 'Approve proposal' }).click()
    await page.getByText('it has taken effect').waitFor()
    expect(await stateOf(id)).toBe('applied')
  })

  it('counts the approvals of a change that needs two, and works with the keyboard alone', async () => {
    const admins = [await scopedKey(server, ['admin:*']), await scopedKey(server, ['admin:*'])]
    const proposed = await call(server, 'PUT /v1/agents/immutable_core/zone', { body: { zone: 'free' } })
    for (const [at, message] of ['It needs one more approval', 'it has taken effect'].entries()) {
      const page = await open('#/proposals', admins[at]?.key)
      await page.getByText(`After 2 approvals, ${at} so far`).waitFor()
      await page.getByRole('link', { name: 'Change the zone to free' }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
      for (const name of ['Approve', 'Approve proposal']) {
        const button = page.getByRole('button', { name, exact: true })
        const isThere = () => button.evaluate((element) => element === document.activeElement)
        for (let presses = 0; presses < 20 && !(await isThere()); presses += 1)
          await page.keyboard.press('Tab')
        await page.keyboard.press('Enter')
      }
      await page.getByText(message).waitFor()
      await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'status')
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    expect(await stateOf(proposed.body.proposal_id)).toBe('applied')
  })

  it('requires a key that is limited to agents to choose one, and names a missing scope', async () => {
    await propose('protected')
    const limited = await scopedKey(server, ['proposals:decide'], ['prot*'])
    const page = await open('#/proposals', limited.key)
    await page.getByText('Choose an agent').waitFor()
    await page.getByLabel('Agent').fill('protected')
    await page.getByLabel('Agent').press('Enter')
    await rows(page).first().waitFor()
    const { key } = await scopedKey(server, ['records:read'])
    const other = await open('#/proposals', key)
    await other.getByText('This key cannot read proposals').waitFor()
  })

  it('keeps a typed agent when the list arrives before it is confirmed', async () => {
    await propose('protected')
    const page = await open('#/proposals')
    await rows(page).first().waitFor()
    let answer = () => {}
    const isTyped = new Promise<void>((resolve) => (answer = resolve))
    await page.route('**/v1/proposals?*', async (found) => {
      await isTyped
      await found.continue()
    })
    const read = page.waitForResponse('**/v1/proposals?*')
    await page.getByRole('button', { name: 'Refresh' }).click()
    await page.getByLabel('Agent').fill('protected')
    answer()
    await (await read).finished()
    // The page shows what it has read.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 50))))
    expect(await page.getByLabel('Agent').inputValue()).toBe('protected')
    await page.getByLabel('Agent').press('Enter')
    await page.waitForURL(/agent=protected/)
  })

  it('is accessible by axe and fits, with its drawer and its confirmation', async () => {
    const id = await propose('governed')
    await call(server, `POST /v1/proposals/${await propose('protected')}/reject`)
    const page = await open('#/proposals/decided')
    await rows(page).first().waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('link', { name: 'Pending' }).click()
    await page.getByRole('timer').first().waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.goto(`${server.url}/console#/proposals/${id}`)
    await page.getByText('"roof"').waitFor()
    await page.getByRole('listitem').filter({ hasText: 'Proposed by Root key' }).waitFor()
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('button', { name: 'Reject', exact: true }).click()
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
