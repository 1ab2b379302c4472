import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { mutationRoutes } from '../../src/routes/mutations.js'
import { ask, headOf, leavesUnchanged, newAgent, scopedKey, unseenSuccesses } from '../support/answers.js'
import { startServer, type TestAnswer, type TestServer } from '../support/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const write = async (data: unknown = { n: 1 }, agent = 'a') =>
  (await ask(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id as string
const remove = (hash: string, headers = {}) => ask(server, `DELETE /v1/agents/a/records/${hash}`, { headers })
const restore = (hash: string, headers = {}) =>
  ask(server, `POST /v1/agents/a/records/${hash}/restore`, { headers })
const view = async (hash: string) => (await ask(server, `GET /v1/agents/a/records/${hash}`)).body

async function latest(): Promise<string[]> {
  const { body } = await ask(server, 'POST /v1/agents/a/query', { body: { type: 'latest', limit: 1_000 } })
  return body.records.map((record: { record_id: string }) => record.record_id)
}

const refusedUnchanged = async (action: () => Promise<TestAnswer>): Promise<[number, string]> => {
  const { status, body } = await leavesUnchanged(server, 'a', action)
  return [status, body.code]
}

describe('deleting and restoring', () => {
  it('are records of their own: the record stays, and only leaves the latest ones', async () => {
    const hash = await write()
    const deleted = await remove(hash)
    const head = await headOf(server, 'a')
    expect(deleted.body).toEqual({ record_id: hash, state: 'deleted', seq: head?.seq })
    expect(await view(hash)).toMatchObject({ deleted: true, erased: false, payload: { n: 1 } })
    expect(await latest()).not.toContain(hash)
    const tombstone = await view(head?.chain_head ?? '')
    expect(tombstone).toMatchObject({ type: 'sys/tombstone', payload: { target: hash } })
    const restored = await restore(`sha256:${hash}`)
    expect(restored.body).toMatchObject({ record_id: hash, state: 'active' })
    expect(await view(hash)).toMatchObject({ deleted: false })
    expect(await latest()).toContain(hash)
    expect((await remove(hash)).status).toBe(200)
  })

  it('answer 409 when there is nothing to do', async () => {
    const hash = await write()
    expect(await refusedUnchanged(() => restore(hash))).toEqual([409, 'not_deleted'])
    await remove(hash)
    expect(await refusedUnchanged(() => remove(hash))).toEqual([409, 'already_deleted'])
  })

  it('let one of many racing deletions win', async () => {
    const hash = await write()
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const racing = await Promise.all(Array.from({ length: 12 }, () => remove(hash)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 409)])
    expect((await headOf(server, 'a'))?.seq).toBe(before + 1)
  })

  it('answer 404 for what is not there, and 400 for what is no hash', async () => {
    const elsewhere = await write({ n: 1 }, 'default')
    for (const act of [remove, restore]) {
      expect(await refusedUnchanged(() => act('0'.repeat(64)))).toEqual([404, 'record_not_found'])
      expect(await refusedUnchanged(() => act(elsewhere))).toEqual([404, 'record_not_found'])
      expect(await refusedUnchanged(() => act('nothing'))).toEqual([400, 'validation_failed'])
    }
    const nobody = await ask(server, `DELETE /v1/agents/nobody/records/${elsewhere}`)
    expect([nobody.status, nobody.body.code]).toEqual([404, 'agent_not_found'])
    expect(await headOf(server, 'nobody')).toBeUndefined()
  })

  it('are refused for records of the server', async () => {
    const { body } = await ask(server, 'GET /v1/agents/a/status')
    expect(await refusedUnchanged(() => remove(body.strand))).toEqual([403, 'forbidden'])
  })

  it('need the scope to write', async () => {
    const hash = await write()
    const { key } = await scopedKey(server, ['records:read', 'ingest', 'agents:admin'])
    for (const route of [
      `DELETE /v1/agents/a/records/${hash}`,
      `POST /v1/agents/a/records/${hash}/restore`,
    ]) {
      expect(await refusedUnchanged(() => ask(server, route, { key }))).toEqual([403, 'forbidden'])
      expect(await refusedUnchanged(() => ask(server, route, { key: null }))).toEqual([401, 'unauthorized'])
    }
  })

  it('answer 413 for a body that they have no use for', async () => {
    const hash = await write()
    const route = `POST /v1/agents/a/records/${hash}/restore`
    const big = () => ask(server, route, { raw: ' '.repeat(2_000) })
    expect(await refusedUnchanged(big)).toEqual([413, 'too_large'])
  })

  it('honour If-Match', async () => {
    const hash = await write()
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    const refused = await leavesUnchanged(server, 'a', () => remove(hash, stale))
    expect([refused.status, refused.body.code]).toEqual([412, 'head_mismatch'])
    expect(refused.body.chain_head).toBe((await headOf(server, 'a'))?.chain_head)
    expect((await remove(hash, { 'if-match': `"${refused.body.chain_head}"` })).status).toBe(200)
  })

  it('honour an Idempotency-Key, for many at the same time too', async () => {
    const hash = await write()
    const headers = { 'idempotency-key': 'delete-once' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => remove(hash, headers)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(200)
    expect(answers.filter((one) => one.headers.get('idempotency-replayed') === 'true').length).toBe(7)
    const other = await write({ n: 2 })
    expect(await refusedUnchanged(() => remove(other, headers))).toEqual([422, 'idempotency_key_reused'])
    expect(await refusedUnchanged(() => restore(hash, headers))).toEqual([422, 'idempotency_key_reused'])
  })
})

describe('the zone of an agent', () => {
  it.each([
    ['immutable_core', 403, 'zone_immutable'],
    ['protected', 422, 'zone_requires_approval'],
    ['governed', 422, 'zone_requires_approval'],
  ])('%s refuses mutations with %i %s, and takes appends', async (zone, status, code) => {
    const agent = await newAgent(server, `zone-${zone}`, zone)
    const hash = await write({ n: 1 }, agent)
    for (const route of [`DELETE /v1/agents/${agent}/records/${hash}`]) {
      const refused = await leavesUnchanged(server, agent, () => ask(server, route))
      expect([refused.status, refused.body.code]).toEqual([status, code])
    }
    const shown = await ask(server, `GET /v1/agents/${agent}/records/${hash}`)
    expect(shown.body.deleted).toBe(false)
    expect(await write({ n: 2 }, agent)).toMatch(/^[0-9a-f]{64}$/)
  })
})

it('answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(mutationRoutes)).toEqual([])
})
