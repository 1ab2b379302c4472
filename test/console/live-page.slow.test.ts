import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSignedIn } from '../support/console/console-page.js'
import { faultsEverywhere } from '../support/console/everywhere.js'
import { writeMany } from '../support/console/strands.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { noBrowser } from '../support/http/browser.js'
import { type TestServer, startServer } from '../support/server/server.js'

describe.skipIf(noBrowser)('the live view of many agents', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await startServer({ env: { SERVICE_SHARDS: '4' } })
    for (const name of ['roof', 'cellar', 'yard']) await writeMany(server, name, [{ celsius: 1 }])
  })

  afterAll(async () => {
    await server?.stop()
  })

  const open = async (at: string, key?: string) => {
    const opened = await openSignedIn(server.url, { at, key })
    const { page } = opened
    const rows = () =>
      page
        .locator('.live-rows li > a.agent + a')
        .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')))
    const shown = (name: string) => page.getByRole('link', { name, exact: true }).waitFor()
    const isLive = () => page.getByRole('status').getByText('Live', { exact: true }).waitFor()
    return { ...opened, rows, shown, isLive }
  }

  it('shows records of all agents with their names, from now or from an earlier time', async () => {
    const { page, rows, shown, isLive } = await open('#/live')
    await isLive()
    await writeMany(server, 'roof', [{ celsius: 2 }])
    await shown('Record 2 of roof')
    await writeMany(server, 'cellar', [{ celsius: 2 }, { rain: true }])
    await shown('Record 3 of cellar')
    expect(await rows()).toEqual(['Record 3 of cellar', 'Record 2 of cellar', 'Record 2 of roof'])
    await page.getByLabel('With field').fill('rain')
    await page.getByLabel('Minutes ago').fill('60')
    await page.getByRole('button', { name: 'Start there' }).click()
    await page.getByRole('link', { name: 'Record 2 of roof', exact: true }).waitFor({ state: 'detached' })
    await shown('Record 3 of cellar')
    expect(await rows()).toEqual(['Record 3 of cellar'])
    expect(await faultsEverywhere(page)).toEqual([])
    await page.getByRole('link', { name: 'Record 3 of cellar', exact: true }).click()
    await page.getByRole('button', { name: 'Prove' }).waitFor()
  })

  it('shows system records too on request, live and from an earlier time', async () => {
    await newAgent(server, 'erased')
    const [hash = ''] = await writeMany(server, 'erased', [{ n: 1 }, { n: 2 }])
    const { page, rows, shown, isLive } = await open('#/live/erased')
    await isLive()
    await page.getByRole('button', { name: 'System records' }).click()
    await isLive()
    await checkedCall(server, `POST /v1/agents/erased/records/${hash}/erase`)
    await shown('Record 3 of erased')
    await page.getByText('sys/erase').waitFor()
    await page.getByLabel('Minutes ago').fill('60')
    await page.getByRole('button', { name: 'Start there' }).click()
    await shown('Record 0 of erased')
    // The body of record 1 is erased.
    expect(await rows()).toEqual([3, 2, 0].map((seq) => `Record ${seq} of erased`))
    await page.getByRole('button', { name: 'System records' }).click()
    await page.getByRole('button', { name: 'Start there' }).click()
    await page.getByText('sys/erase').waitFor({ state: 'detached' })
    await shown('Record 2 of erased')
    expect(await rows()).toEqual(['Record 2 of erased'])
  })

  it('lists replayed records of several shards in order of time', async () => {
    const written: string[] = []
    for (let round = 0; round < 3; round += 1) {
      for (const agent of ['one', 'two', 'three', 'four', 'five']) {
        await writeMany(server, agent, [{ ordered: round }])
        written.unshift(`Record ${round + 1} of ${agent}`)
      }
    }
    const { page, rows, shown } = await open('#/live')
    await page.getByLabel('With field').fill('ordered')
    await page.getByLabel('Minutes ago').fill('60')
    await page.getByRole('button', { name: 'Start there' }).click()
    await shown('Record 1 of one')
    expect(await rows()).toEqual(written)
  })

  it('shows records of the chosen agents, which are part of the address', async () => {
    const { page, rows, shown, isLive } = await open('#/live')
    for (const name of ['roof', 'yard']) {
      await page.getByLabel('Only agent').fill(name)
      await page.getByRole('button', { name: 'Add' }).click()
      await page.getByRole('button', { name: `Remove ${name}` }).waitFor()
    }
    expect(page.url()).toContain('#/live/roof%2Cyard')
    await page.reload()
    await isLive()
    await writeMany(server, 'cellar', [{ celsius: 3 }])
    await writeMany(server, 'yard', [{ celsius: 3 }])
    await shown('Record 2 of yard')
    expect(await rows()).toEqual(['Record 2 of yard'])
    await page.getByRole('button', { name: 'Remove roof' }).click()
    await page.getByRole('button', { name: 'Remove yard' }).click()
    await page.getByText('Records of all agents').waitFor()
    expect(new URL(page.url()).hash).toBe('#/live')
  })

  it('shows a key that is limited to agents only their records', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['ya*', 'roof'])
    const { rows, shown, isLive } = await open('#/live', key)
    await isLive()
    await writeMany(server, 'cellar', [{ celsius: 4 }])
    await writeMany(server, 'yard', [{ celsius: 4 }])
    await shown('Record 3 of yard')
    expect(await rows()).toEqual(['Record 3 of yard'])
  })

  it('explains to a key without records:read that it cannot read', async () => {
    const { key } = await scopedKey(server, ['ingest'])
    const { page } = await open('#/live', key)
    await page.getByText('This key cannot read all agents').waitFor()
  })
})
