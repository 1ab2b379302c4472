import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyAsOf } from '../../src/client/index.js'
import { asOfRoute } from '../../src/front/routes/as-of.js'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { TreeHasher } from '../../src/strand/merkle.js'
import { checkedCall, headOf, newAgent, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'
import { signUp, subjectOf } from '../support/auth/users.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

/** One page of a strand at a past time. */
async function asOf(agent: string, ts: string, more: Record<string, string> = {}) {
  const route = `GET /v1/strand/as-of?${new URLSearchParams({ agent, ts, ...more })}`
  const { status, body, text } = await checkedCall(server, route)
  expect(status, text).toBe(200)
  return body
}

async function write(agent: string, n: number): Promise<{ id: string; timestamp_hlc: string }> {
  const { status, body } = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
    body: { data: { n } },
  })
  expect(status).toBe(201)
  return body
}

/** The current public key of an agent. */
async function keyOf(agent: string): Promise<string> {
  return (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body.public_key
}

/** The clock of the last record of an agent. */
async function lastClock(agent: string): Promise<string> {
  const { body } = await checkedCall(server, `GET /v1/agents/${agent}/head`)
  return body.timestamp_hlc
}

const numbersOf = (body: { records: { payload: { n: number } }[] }) =>
  body.records.map(({ payload }) => payload.n)

function rootOf(hashes: readonly string[]): string {
  const tree = new TreeHasher()
  for (const hash of hashes) tree.append(Buffer.from(hash, 'hex'))
  return Buffer.from(tree.root()).toString('hex')
}

/** The hashes of a strand, in order. */
async function hashesOf(agent: string): Promise<string[]> {
  const body = { type: 'time_range', types: ['*'], limit: 1_000 }
  const { body: found } = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })
  return found.records.map(({ record_id: id }: { record_id: string }) => id)
}

describe('a strand as of a given time', () => {
  it('shows the records of that time, oldest first, with head and count', async () => {
    const agent = await newAgent(server, 'formats')
    const written = [await write(agent, 0), await write(agent, 1), await write(agent, 2)]
    for (const [n, { id, timestamp_hlc: ts }] of written.entries()) {
      const body = await asOf(agent, ts)
      expect(numbersOf(body)).toEqual([0, 1, 2].slice(0, n + 1))
      expect(body).toMatchObject({ ts, chain_head: id, record_count: n + 1, next_cursor: null, zone: 'free' })
    }
  })

  it('ignores later tombstones and restores, and leaves out records that were deleted then', async () => {
    const agent = await newAgent(server, 'changed')
    const { id } = await write(agent, 0)
    await write(agent, 1)
    const moments = [await lastClock(agent)]
    await checkedCall(server, `DELETE /v1/agents/${agent}/records/${id}`)
    moments.push(await lastClock(agent))
    await checkedCall(server, `POST /v1/agents/${agent}/records/${id}/restore`)
    moments.push(await lastClock(agent))
    await checkedCall(server, `DELETE /v1/agents/${agent}/records/${id}`)
    moments.push(await lastClock(agent))
    const seen = await Promise.all(moments.map(async (ts) => numbersOf(await asOf(agent, ts))))
    expect(seen).toEqual([[0, 1], [1], [0, 1], [1]])
    const counts = await Promise.all(moments.map(async (ts) => (await asOf(agent, ts)).record_count))
    expect(counts).toEqual([2, 3, 4, 5])
  })

  it('leaves out records erased since, but counts them', async () => {
    const agent = await newAgent(server, 'forgotten')
    const { id } = await write(agent, 0)
    const { timestamp_hlc: ts } = await write(agent, 1)
    expect((await checkedCall(server, `POST /v1/agents/${agent}/records/${id}/erase`)).status).toBe(200)
    const then = await asOf(agent, ts)
    expect([numbersOf(then), then.record_count]).toEqual([[1], 2])
    const { body } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    expect(verifyCheckpoint(then.checkpoint, body.public_key)).toMatchObject({ size: 3 })
  })

  it('accepts ISO 8601 and Unix milliseconds, which mean the whole millisecond, and an HLC', async () => {
    const agent = await newAgent(server, 'timed')
    const records = Array.from({ length: 20 }, (_none, n) => ({ data: { n } }))
    const { body } = await checkedCall(server, `POST /v1/agents/${agent}/records/batch`, {
      body: { records },
    })
    const ms = Number.parseInt(body.results[0].timestamp_hlc.slice(0, 12), 16)
    const whole = body.results.filter(
      (one: { timestamp_hlc: string }) => Number.parseInt(one.timestamp_hlc.slice(0, 12), 16) === ms,
    ).length
    for (const ts of [
      String(ms),
      new Date(ms).toISOString(),
      new Date(ms).toISOString().replace('Z', '+00:00'),
    ]) {
      expect(numbersOf(await asOf(agent, ts))).toHaveLength(whole)
    }
    expect(numbersOf(await asOf(agent, body.results[4].timestamp_hlc))).toEqual([0, 1, 2, 3, 4])
  })

  it('is empty before the genesis record, and current for a time in the future', async () => {
    const agent = await newAgent(server, 'young')
    await write(agent, 0)
    expect(await asOf(agent, '2001-09-09T01:46:40Z')).toEqual({
      ts: '2001-09-09T01:46:40Z',
      records: [],
      chain_head: null,
      record_count: 0,
      next_cursor: null,
      checkpoint: null,
      zone: null,
    })
    const head = await headOf(server, agent)
    expect(await asOf(agent, '2999-01-01')).toMatchObject({
      chain_head: head?.chain_head,
      record_count: head?.record_count,
    })
  })

  it('has the checkpoint of that time, which verifies against its tree', async () => {
    const agent = await newAgent(server, 'proved')
    const { body: status } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    // More than 256 leaves, and a group of which only the last record is signed.
    const records = Array.from({ length: 300 }, (_none, n) => ({ data: { n } }))
    const route = `POST /v1/agents/${agent}/records/batch?signing=group`
    const { body } = await checkedCall(server, route, { body: { records } })
    const hashes = await hashesOf(agent)
    for (const seq of [1, 2, 255, 256, 257, 300]) {
      const { timestamp_hlc: ts } = body.results[seq - 1]
      const then = await asOf(agent, ts, { limit: '1' })
      expect(then.record_count).toBe(seq)
      expect(verifyCheckpoint(then.checkpoint, status.public_key)).toMatchObject({
        size: seq + 1,
        rootHex: rootOf(hashes.slice(0, seq + 1)),
      })
    }
  })

  it('has a checkpoint signed by the current key for a time before one or two rotations', async () => {
    const agent = await newAgent(server, 'rotated')
    const keys = [await keyOf(agent)]
    const moments = [(await write(agent, 0)).timestamp_hlc]
    for (let rotations = 1; rotations <= 2; rotations++) {
      expect((await checkedCall(server, `POST /v1/agents/${agent}/rotate-key`)).status).toBe(200)
      keys.push(await keyOf(agent))
      moments.push(await lastClock(agent), (await write(agent, rotations)).timestamp_hlc)
      const hashes = await hashesOf(agent)
      for (const [at, ts] of moments.entries()) {
        const size = at + 2
        const { checkpoint, record_count: count } = await asOf(agent, ts)
        expect(count).toBe(size - 1)
        const rootHex = rootOf(hashes.slice(0, size))
        expect(verifyCheckpoint(checkpoint, keys.at(-1) ?? '')).toMatchObject({ size, rootHex })
        for (const old of keys.slice(0, -1)) expect(verifyCheckpoint(checkpoint, old)).toBeUndefined()
      }
    }
  })

  it('has a checkpoint before a rotation that verifies with an export and any key of the strand', async () => {
    const agent = await newAgent(server, 'followed')
    const keys = [await keyOf(agent)]
    const { timestamp_hlc: ts } = await write(agent, 0)
    for (let rotations = 1; rotations <= 2; rotations++) {
      await checkedCall(server, `POST /v1/agents/${agent}/rotate-key`)
      keys.push(await keyOf(agent))
    }
    const then = await asOf(agent, ts)
    const exported = async (more = '') =>
      (await checkedCall(server, `GET /v1/strand/export?agent=${agent}${more}`)).text
    const whole = await exported()
    for (const publicKey of keys) {
      expect(await verifyAsOf(then, { publicKey, strandExport: whole })).toMatchObject({ ok: true, size: 2 })
    }
    const [first = '', , last = ''] = keys
    expect(await verifyAsOf(then, { publicKey: last })).toMatchObject({ ok: true, size: 2 })
    expect(await verifyAsOf(then, { publicKey: first })).toEqual({
      ok: false,
      reason: 'The checkpoint of the answer is not signed by the key',
    })
    // It ends before the second rotation, so it cannot contain the third key.
    const cut = await verifyAsOf(then, { publicKey: first, strandExport: await exported('&to_seq=2') })
    expect(cut).toEqual({
      ok: false,
      reason: expect.stringMatching(/in the export, which has 3 of 4 records: one that reaches the rotation/),
    })
  })

  it('shows the zone of that time', async () => {
    const agent = await newAgent(server, 'zoned')
    const moments = [await lastClock(agent)]
    for (const zone of ['free', 'governed']) {
      const changed = await checkedCall(server, `PUT /v1/agents/${agent}/zone`, { body: { zone } })
      expect(changed.status).toBe(200)
      moments.push(await lastClock(agent))
      moments.push((await write(agent, 1)).timestamp_hlc)
    }
    const zones = await Promise.all(moments.map(async (ts) => (await asOf(agent, ts)).zone))
    expect(zones).toEqual(['free', 'free', 'free', 'governed', 'governed'])
  })
})

describe('its pages', () => {
  it('all show the same time while the strand grows, also for a time in the future', async () => {
    const agent = await newAgent(server, 'paged')
    for (let n = 0; n < 10; n++) await write(agent, n)
    const hashes = await hashesOf(agent)
    for (const ts of [await lastClock(agent), '2999-12-31T23:59:59.999Z']) {
      const before = await headOf(server, agent)
      const seen: number[] = []
      const heads = new Set<string>()
      let cursor: string | null = null
      do {
        const body: Awaited<ReturnType<typeof asOf>> = await asOf(agent, ts, {
          limit: '3',
          ...(cursor !== null && { cursor }),
        })
        seen.push(...numbersOf(body))
        heads.add(`${body.chain_head} ${body.record_count} ${body.zone}`)
        cursor = body.next_cursor
        await write(agent, 100)
        // Its tombstone is later.
        if (seen.length === 3) await checkedCall(server, `DELETE /v1/agents/${agent}/records/${hashes[9]}`)
      } while (cursor !== null)
      expect(seen.filter((n) => n < 100)).toEqual(
        ts.startsWith('2999') ? [0, 1, 2, 3, 4, 5, 6, 7, 9] : [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
      )
      const count = before?.record_count ?? 0
      expect([...heads]).toEqual([expect.stringMatching(new RegExp(`^${before?.chain_head} ${count} free$`))])
    }
  })
})

describe('access to a past time', () => {
  it('is allowed for a key with the scope that reaches the agent', async () => {
    const agent = await newAgent(server, 'guarded')
    const { timestamp_hlc: ts } = await write(agent, 0)
    const path = `GET /v1/strand/as-of?agent=${agent}&ts=${ts}`
    const writer = await scopedKey(server, ['records:write'])
    const other = await scopedKey(server, ['records:read'], ['another'])
    const own = await scopedKey(server, ['records:read'], [agent])
    const statuses = [null, writer.key, other.key, own.key].map(
      async (key) => (await checkedCall(server, path, { key })).status,
    )
    expect(await Promise.all(statuses)).toEqual([401, 403, 403, 200])
  })

  it('is allowed for a user by the current row policies, for the rows that they show', async () => {
    const agent = await newAgent(server, 'shared')
    const token = await signUp(server, 'as-of@example.org')
    const owner = subjectOf(token)
    for (const [n, one] of [owner, 'another', owner].entries()) {
      await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n, owner: one } } })
    }
    const ts = await lastClock(agent)
    const path = `GET /v1/strand/as-of?agent=${agent}&ts=${ts}`
    expect((await checkedCall(server, path, { key: token })).status).toBe(403)
    const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
    const policies = [{ actions: ['read'], conditions }]
    await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body: { policies } })
    const { status, body } = await checkedCall(server, path, { key: token })
    expect([status, numbersOf(body), body.record_count]).toEqual([200, [0, 2], 3])
    expect(numbersOf(await asOf(agent, ts))).toEqual([0, 1, 2])
  })
})

it('answers 400 for an invalid time, limit or cursor, and 404 for a missing agent', async () => {
  for (const query of [
    '',
    'ts=',
    'ts=yesterday',
    'ts=2026-02-30T00:00:00Z',
    'ts=-1',
    // Regression: an audit got an empty answer.
    'ts=20270101',
    'ts=2027',
    'ts=1790000000',
    'ts=0&limit=0',
    'ts=0&limit=1001',
    'ts=0&cursor=x',
    `ts=0&cursor=${Buffer.from('["as-of",0,999999]').toString('base64url')}`,
    'ts=0&agent=../x',
  ]) {
    const { status, body } = await checkedCall(server, `GET /v1/strand/as-of?${query}`)
    expect([status, body.code], query).toEqual([400, 'validation_failed'])
  }
  const { status, body } = await checkedCall(server, 'GET /v1/strand/as-of?ts=0&agent=absent')
  expect([status, body.code]).toEqual([404, 'agent_not_found'])
})

it('uses the default agent if none is named', async () => {
  const { body } = await checkedCall(server, 'GET /v1/strand/as-of?ts=2999-01-01')
  expect(body.chain_head).toBe((await headOf(server, 'default'))?.chain_head)
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses([asOfRoute('default')])).toEqual([])
})
