import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { axeFindings, openConsole, openSignedIn } from '../support/console/console-page.js'
import { writeMany } from '../support/console/strands.js'
import { newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer, testRootKey } from '../support/server/server.js'

describe.skipIf(noBrowser)('the page of the API and the session of the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer()
    // More than a page of agents, before the one that was written last.
    for (let number = 0; number < 101; number += 1) await newAgent(server, `a-silent-one-${number}`)
    await writeMany(server, 'earlier', [{ n: 1 }])
    await writeMany(server, 'latest.one', [{ n: 1 }, { n: 2 }])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const openApi = async (key?: string): Promise<Page> => {
    const { page } = await openSignedIn(server.url, { key })
    await page.getByRole('link', { name: 'API', exact: true }).click()
    await page.locator('article').first().waitFor()
    return page
  }
  const operation = (page: Page, id: string) => page.locator(`article#${id}`)
  const open = async (page: Page, id: string) => {
    const article = operation(page, id)
    await article.locator('.try summary').first().click()
    return article
  }
  const keyField = (page: Page) => page.getByLabel('API key', { exact: true })
  const agentOf = (page: Page, id: string) => operation(page, id).getByLabel('agent', { exact: true })

  it('takes over the key, and reads an agent that exists without any input', async () => {
    const page = await openApi()
    await expect.poll(() => keyField(page).inputValue()).toBe(testRootKey)
    const article = await open(page, 'getAgentHead')
    await expect.poll(() => agentOf(page, 'getAgentHead').inputValue()).toBe('latest.one')
    await article.getByText('as Root key, signed in to the console').waitFor()
    expect(await axeFindings(page, 'structure')).toEqual([])
    // Operations of one method have the same colours.
    const others =
      'article:not(#getAgentHead, #postAgentRotateKey, #putAgentZone, #deleteAgentRecord, [id^=patch])'
    expect(await axeFindings(page, 'colours', others)).toEqual([])
    await article.getByRole('button', { name: 'Send' }).click()
    await article.locator('.result > p').getByText('200 OK').waitFor()
    expect(await article.locator('pre').first().textContent()).toContain('/v1/agents/latest.one/head')
    const record = await open(page, 'getAgentRecord')
    await record.getByRole('button', { name: 'Send' }).click()
    await record.locator('.result > p').getByText('200 OK').waitFor()
    const proof = await open(page, 'getStrandProof')
    await proof.getByRole('button', { name: 'Send' }).click()
    await proof.locator('.result > p').getByText('200 OK').waitFor()
  })

  it('keeps the documented agent in examples that change or destroy', async () => {
    const page = await openApi()
    await expect
      .poll(() => operation(page, 'getAgentHead').locator('pre').first().textContent())
      .toContain('latest.one')
    for (const id of ['deleteAgentRecord', 'putAgentPolicies', 'putAgentZone', 'postAgentRotateKey']) {
      const curl = await operation(page, id).locator('pre').first().textContent()
      expect([id, curl?.includes('/v1/agents/sensors/')]).toEqual([id, true])
    }
  })

  it('chooses an agent that the key can access, and sends an entered key instead', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['earl*'])
    const page = await openApi(key)
    const article = await open(page, 'getAgentHead')
    await expect.poll(() => agentOf(page, 'getAgentHead').inputValue()).toBe('earlier')
    await keyField(page).fill(testRootKey)
    await article.getByText('with the key entered above').waitFor()
    await keyField(page).fill('')
    await article.getByText('without a key').waitFor()
  })

  it('works without a session, and forgets the key after a sign-out', async () => {
    const page = await openApi()
    await expect.poll(() => keyField(page).inputValue()).toBe(testRootKey)
    await page.getByRole('link', { name: 'Console', exact: true }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('link', { name: 'API', exact: true }).click()
    await open(page, 'getAgentHead')
    expect(await keyField(page).inputValue()).toBe('')
    expect(await agentOf(page, 'getAgentHead').inputValue()).toBe('sensors')
    const other = await openConsole(server.url)
    await other.page.getByRole('link', { name: 'API', exact: true }).click()
    await operation(other.page, 'getAgentHead').waitFor()
    expect(await keyField(other.page).inputValue()).toBe('')
  })
})
