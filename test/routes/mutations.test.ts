import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport as verifyByClient } from '../../src/client/verify-export.js'
import { mutationRoutes } from '../../src/front/routes/mutations.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { isCaughtUp, openStream } from '../support/http/events.js'
import { eventually } from '../support/eventually.js'
import { startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const write = async (data: unknown = { n: 1 }, agent = 'a') =>
  (await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })).body.id as string
const remove = (hash: string, headers = {}) =>
  checkedCall(server, `DELETE /v1/agents/a/records/${hash}`, { headers })
const restore = (hash: string, headers = {}) =>
  checkedCall(server, `POST /v1/agents/a/records/${hash}/restore`, { headers })
const erase = (hash: string, headers = {}) =>
  checkedCall(server, `POST /v1/agents/a/records/${hash}/erase`, { headers })
const view = async (hash: string) => (await checkedCall(server, `GET /v1/agents/a/records/${hash}`)).body

async function latest(): Promise<string[]> {
  const { body } = await checkedCall(server, 'POST /v1/agents/a/query', {
    body: { type: 'latest', limit: 1_000 },
  })
  return body.records.map((record: { record_id: string }) => record.record_id)
}

const refusedUnchanged = async (action: () => Promise<TestAnswer>): Promise<[number, string]> => {
  const { status, body } = await expectUnchanged(server, 'a', action)
  return [status, body.code]
}

describe('deleting and restoring', () => {
  it('append records; the original record stays, and only leaves the latest ones', async () => {
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

  it('answer 409 if there is nothing to change', async () => {
    const hash = await write()
    expect(await refusedUnchanged(() => restore(hash))).toEqual([409, 'not_deleted'])
    await remove(hash)
    expect(await refusedUnchanged(() => remove(hash))).toEqual([409, 'already_deleted'])
  })

  it('delete a record once for concurrent requests', async () => {
    const hash = await write()
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const racing = await Promise.all(Array.from({ length: 12 }, () => remove(hash)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 409)])
    expect((await headOf(server, 'a'))?.seq).toBe(before + 1)
  })

  it('answer 404 for a missing record, and 400 for an invalid hash', async () => {
    const elsewhere = await write({ n: 1 }, 'default')
    for (const act of [remove, restore, erase]) {
      expect(await refusedUnchanged(() => act('0'.repeat(64)))).toEqual([404, 'record_not_found'])
      expect(await refusedUnchanged(() => act(elsewhere))).toEqual([404, 'record_not_found'])
      expect(await refusedUnchanged(() => act('nothing'))).toEqual([400, 'validation_failed'])
    }
    const absent = await checkedCall(server, `DELETE /v1/agents/absent/records/${elsewhere}`)
    expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
    expect(await headOf(server, 'absent')).toBeUndefined()
  })

  it('are refused for records of the server', async () => {
    const { body } = await checkedCall(server, 'GET /v1/agents/a/status')
    for (const act of [remove, restore, erase]) {
      expect(await refusedUnchanged(() => act(body.strand))).toEqual([403, 'forbidden'])
    }
  })

  it('require a separate scope: a key that appends cannot delete', async () => {
    const hash = await write()
    const others = ['records:read', 'records:write', 'ingest', 'agents:admin'] as const
    const { key: deletes } = await scopedKey(server, [...others, 'records:delete'])
    const { key: erases } = await scopedKey(server, [...others, 'records:erase'])
    for (const [route, key] of [
      [`DELETE /v1/agents/a/records/${hash}`, erases],
      [`POST /v1/agents/a/records/${hash}/restore`, erases],
      [`POST /v1/agents/a/records/${hash}/erase`, deletes],
    ] as const) {
      expect(await refusedUnchanged(() => checkedCall(server, route, { key }))).toEqual([403, 'forbidden'])
      expect(await refusedUnchanged(() => checkedCall(server, route, { key: null }))).toEqual([
        401,
        'unauthorized',
      ])
    }
  })

  it('are allowed for a key with only their scope', async () => {
    const hash = await write()
    const { key: deletes } = await scopedKey(server, ['records:delete'])
    const { key: erases } = await scopedKey(server, ['records:erase'])
    const statuses: number[] = []
    for (const [route, key] of [
      [`DELETE /v1/agents/a/records/${hash}`, deletes],
      [`POST /v1/agents/a/records/${hash}/restore`, deletes],
      [`POST /v1/agents/a/records/${hash}/erase`, erases],
    ] as const) {
      statuses.push((await checkedCall(server, route, { key })).status)
    }
    expect(statuses).toEqual([200, 200, 200])
  })

  it('answer 413 for an unexpected large body', async () => {
    const hash = await write()
    for (const action of ['restore', 'erase']) {
      const route = `POST /v1/agents/a/records/${hash}/${action}`
      const big = () => checkedCall(server, route, { raw: ' '.repeat(2_000) })
      expect(await refusedUnchanged(big)).toEqual([413, 'too_large'])
    }
  })

  it('honour If-Match', async () => {
    const hash = await write()
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    const refused = await expectUnchanged(server, 'a', () => remove(hash, stale))
    expect([refused.status, refused.body.code]).toEqual([412, 'head_mismatch'])
    expect(refused.body.chain_head).toBe((await headOf(server, 'a'))?.chain_head)
    expect((await remove(hash, { 'if-match': `"${refused.body.chain_head}"` })).status).toBe(200)
    const late = await expectUnchanged(server, 'a', () => erase(hash, stale))
    expect([late.status, late.body.code]).toEqual([412, 'head_mismatch'])
  })

  it('honour an Idempotency-Key, also for concurrent requests', async () => {
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

describe('erasing', () => {
  it('removes the body from every answer, and keeps the place of the record in the chain', async () => {
    const hash = await write({ name: 'Ada Lovelace' })
    const before = await view(hash)
    const proof = (await checkedCall(server, `GET /v1/strand/proof?agent=a&hash=${hash}`)).body
    const erased = await erase(hash)
    const head = await headOf(server, 'a')
    expect(erased.body).toEqual({ record_id: hash, state: 'erased', seq: head?.seq })
    expect(await view(hash)).toEqual({ ...before, payload: null, erased: true })
    expect(await view(head?.chain_head ?? '')).toMatchObject({
      type: 'sys/erase',
      payload: { target: hash, target_seq: before.seq, principal: 'root' },
    })
    expect(await latest()).not.toContain(hash)
    for (const body of [
      { type: 'hash', hash },
      { type: 'time_range', from_ts: 0, to_ts: before.timestamp_hlc, types: ['record'], limit: 1_000 },
    ]) {
      const { text } = await checkedCall(server, 'POST /v1/agents/a/query', { body })
      expect(text).not.toContain(hash)
    }
    const after = (await checkedCall(server, `GET /v1/strand/proof?agent=a&hash=${hash}`)).body
    expect([after.seq, after.hash]).toEqual([proof.seq, proof.hash])
  })

  it('appears in exports, which both verifiers accept', async () => {
    const agent = await newAgent(server, 'exported')
    const hashes = [await write({ n: 1 }, agent), await write({ secret: 'Ada Lovelace' }, agent)]
    await checkedCall(server, `POST /v1/agents/${agent}/records/${hashes[1]}/erase`)
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
    const lines = text.trimEnd().split('\n')
    const line = JSON.parse(lines[3] ?? '')
    expect(Object.keys(line).toSorted()).toEqual(['erased', 'h', 'sig'])
    expect(text).not.toContain('Lovelace')
    const { public_key: publicKey } = (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body
    expect(await verifyExport(lines, { publicKey })).toMatchObject({ ok: true, records: 4, erased: 1 })
    expect(await verifyByClient(text, { publicKey })).toMatchObject({ ok: true, erased: 1 })
  })

  it('is allowed for deleted records, and is final', async () => {
    const hash = await write()
    await remove(hash)
    expect((await erase(hash)).status).toBe(200)
    for (const act of [erase, remove, restore]) {
      expect(await refusedUnchanged(() => act(hash))).toEqual([409, 'already_erased'])
    }
  })

  it('applies to replays of streams', async () => {
    const agent = await newAgent(server, 'streamed')
    const [gone, kept] = [await write({ n: 1 }, agent), await write({ n: 2 }, agent)]
    await checkedCall(server, `POST /v1/agents/${agent}/records/${gone}/erase`)
    const stream = await openStream(server, `/v1/agents/${agent}/stream?since=0`)
    await stream.until(isCaughtUp)
    stream.close()
    const records = stream.events.filter(({ event }) => event === 'record')
    expect(records.map(({ data }) => data.record_id)).toEqual([kept])
  })

  it('leaves nothing of the body in the files of the store', async () => {
    const secret = 'a text that stands nowhere else, 4f1d'
    const hash = await write({ secret })
    const files = () => storeFiles(server.dataDir).filter((bytes) => bytes.includes(secret)).length
    expect(files()).toBeGreaterThan(0)
    // A reader thread that has just read it would keep its view, if it did not release it.
    expect((await checkedCall(server, 'GET /v1/strand/export?agent=a')).text).toContain(secret)
    await erase(hash)
    await eventually(() => files() === 0)
    // The thread itself ends after 30 s, and its view with it.
  }, 20_000)
})

/** The files of all shards: of their stores and of their logs. */
function storeFiles(dataDir: string): Buffer[] {
  return readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('data.mdb') || name.endsWith('.log'))
    .map((name) => readFileSync(join(dataDir, name)))
}

describe('the zone of an agent', () => {
  it('immutable_core always refuses mutations, but accepts appends', async () => {
    const agent = await newAgent(server, 'zone-immutable', 'immutable_core')
    const hash = await write({ n: 1 }, agent)
    const path = `/v1/agents/${agent}/records/${hash}`
    for (const route of [`DELETE ${path}`, `POST ${path}/restore`, `POST ${path}/erase`]) {
      const refused = await expectUnchanged(server, agent, () => checkedCall(server, route))
      expect([refused.status, refused.body.code]).toEqual([403, 'zone_immutable'])
    }
    expect((await checkedCall(server, `GET ${path}`)).body).toMatchObject({ deleted: false, erased: false })
    expect(await write({ n: 2 }, agent)).toMatch(/^[0-9a-f]{64}$/)
  })

  it.each(['protected', 'governed'])('%s turns mutations into proposals', async (zone) => {
    const agent = await newAgent(server, `zone-${zone}`, zone)
    const { key } = await scopedKey(server, ['proposals:decide'])
    for (const route of ['DELETE /', 'POST /restore', 'POST /erase']) {
      const hash = await write({ n: 1 }, agent)
      const path = `/v1/agents/${agent}/records/${hash}`
      const [method = '', action = ''] = route.split(' ')
      if (action === '/restore') await approve(await checkedCall(server, `DELETE ${path}`), key)
      const before = Date.now()
      const proposed = await checkedCall(server, `${method} ${path}${action === '/' ? '' : action}`)
      expect([proposed.status, proposed.body.state]).toEqual([202, 'proposed'])
      if (zone === 'protected') expect(proposed.body.effective_at_ms).toBeNull()
      else expect(proposed.body.effective_at_ms).toBeGreaterThanOrEqual(before + 60_000)
      expect((await approve(proposed, key)).body.state).toBe('applied')
    }
  })
})

function approve(proposed: TestAnswer, key: string): Promise<TestAnswer> {
  return checkedCall(server, `POST /v1/proposals/${proposed.body.proposal_id}/approve`, { key })
}

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(mutationRoutes)).toEqual([])
})
