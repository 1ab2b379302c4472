import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsolePage, openSignedIn, verdict } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, call, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('deleting, restoring and erasing in the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
  })

  afterAll(async () => {
    await server?.stop()
  })

  /** Opens the drawer of the first record of a new agent. */
  const open = async (
    agent: string,
    { zone = 'free', key = server.rootKey } = {},
  ): Promise<ConsolePage & { hash: string }> => {
    await newAgent(server, agent, zone)
    const [hash = ''] = await writeMany(server, agent, [{ celsius: 21, place: 'roof' }])
    const opened = await openSignedIn(server.url, { at: `#/agents/${agent}/1`, key })
    await opened.page.getByRole('heading', { name: 'Change' }).waitFor()
    return { ...opened, hash }
  }
  const shown = async (agent: string, hash: string) =>
    (await call(server, `GET /v1/agents/${agent}/records/${hash}`)).body
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

  it('erases after the digits are typed, lists the consequences, and proves the record again', async () => {
    const { page, hash } = await open('erased')
    await press(page, 'Erase')
    await page.getByText('The body, 29 B').waitFor()
    for (const text of [
      'What is removed',
      'What stays',
      'Existing backups',
      'the change takes effect immediately',
    ])
      await page.getByText(text).waitFor()
    const button = page.getByRole('button', { name: 'Erase permanently' })
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill(hash.slice(0, 8))
    await expect.poll(() => button.isDisabled()).toBe(true)
    await page.getByLabel('To confirm, type').fill(hash.slice(-8))
    await button.click()
    await page.getByText('The body is erased, by the signed record 2').waitFor()
    expect(await verdict(page)).toContain(
      'Consistent; the signer is not known to you: record 1 of erased is in the checkpoint of 2 records and the genesis',
    )
    await page.getByText('The body and its salt are erased').waitFor()
    expect(await shown('erased', hash)).toMatchObject({ erased: true, payload: null })
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Done')
    await page.keyboard.press('Enter')
    await page.getByText('The record cannot be changed any more').waitFor()
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Change')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Record 2', exact: true }).waitFor()
  })

  it('deletes and restores a record, and shows its new state', async () => {
    const { page, hash } = await open('back')
    await press(page, 'Delete')
    await page.getByText('It can be restored').waitFor()
    await press(page, 'Cancel')
    expect(await shown('back', hash)).toMatchObject({ deleted: false })
    await press(page, 'Delete')
    await press(page, 'Delete record')
    await page.getByText('The record is deleted, by the signed record 2').waitFor()
    await press(page, 'Done')
    await press(page, 'Restore')
    await press(page, 'Restore record')
    await page.getByText('The record is active again').waitFor()
    expect(await shown('back', hash)).toMatchObject({ deleted: false })
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Delete', exact: true }).waitFor()
  })

  it('makes a proposal if the zone requires one, links to it, and reports that it is already pending', async () => {
    const { page, hash, allow } = await open('proposed', { zone: 'protected' })
    await press(page, 'Erase')
    await page.getByText('when another key with proposals:decide approves it').waitFor()
    await page.getByLabel('To confirm, type').fill(hash.slice(-8))
    await press(page, 'Propose change')
    await page.getByText('The change is now a pending proposal').waitFor()
    expect(await shown('proposed', hash)).toMatchObject({ erased: false })
    await press(page, 'Done')
    // The server refuses the second proposal, which the browser reports.
    allow('status of 409')
    await press(page, 'Delete')
    await press(page, 'Propose change')
    await page.getByText('A proposal about this record is already pending').waitFor()
    await page.keyboard.press('Escape')
    await page.goto(`${server.url}/console#/proposals/p_2_proposed`)
    await page.getByRole('heading', { name: 'Permanently erase record 1' }).waitFor()
  })

  it('explains why a record cannot be changed: records of the server, zone immutable_core, missing scopes', async () => {
    const { page } = await open('fixed', { zone: 'immutable_core' })
    await page.getByText('its records can never be changed').waitFor()
    await page.goto(`${server.url}/console#/agents/fixed/0`)
    await page.getByText('Records of the server cannot be deleted or erased').waitFor()
    const { key } = await scopedKey(server, ['records:read'])
    const other = await open('read-only', { key })
    await expect.poll(() => other.page.getByRole('button', { name: 'Erase' }).isDisabled()).toBe(true)
    expect(await other.page.getByText('needs records:delete').count()).toBe(1)
    expect(await other.page.getByText('needs records:erase').count()).toBe(1)
  })

  it('is accessible by axe and fits, before and after', async () => {
    const { page, hash } = await open('accessible')
    expect(await faultsEverywhere(page)).toEqual([])
    await press(page, 'Erase')
    await page.getByLabel('To confirm, type').fill(hash.slice(-8))
    expect(await faultsEverywhere(page)).toEqual([])
    await press(page, 'Erase permanently')
    await verdict(page)
    expect(await faultsEverywhere(page)).toEqual([])
  })
})
