import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport as verifyByClient } from '../../src/client/verify-export.js'
import { agentChangeRoutes } from '../../src/front/routes/agent-changes.js'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { zones } from '../../src/strand/zone.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestAnswer, type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const setZone = (agent: string, zone: string, call: TestCall = {}) =>
  checkedCall(server, `PUT /v1/agents/${agent}/zone`, { body: { zone }, ...call })
const rotate = (agent: string, call: TestCall = {}) =>
  checkedCall(server, `POST /v1/agents/${agent}/rotate-key`, call)
const status = async (agent: string) => (await checkedCall(server, `GET /v1/agents/${agent}/status`)).body
const write = (agent: string) =>
  checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data: { n: 1 } } })
const seed = (digits: string) => digits.repeat(32)

async function refusedUnchanged(action: () => Promise<TestAnswer>): Promise<[number, string]> {
  const { status: code, body } = await expectUnchanged(server, 'a', action)
  return [code, body.code]
}

describe('a rotation because of a compromised key', () => {
  it('states the reason in its record and in its proposal', async () => {
    const bodiesOf = async (agent: string, type: string) => {
      const body = { type: 'time_range', from_ts: 0, types: [type] }
      const { records } = (await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })).body
      return records.map(({ payload }: { payload: unknown }) => payload)
    }
    const reason = { body: { reason: 'compromise' } }
    const free = await newAgent(server, 'leaked')
    expect((await rotate(free, reason)).status).toBe(200)
    expect(await bodiesOf(free, 'sys/key_rotate')).toMatchObject([
      { reason: 'compromise', principal: 'root' },
    ])
    const other = await newAgent(server, 'not-leaked')
    await rotate(other)
    expect((await bodiesOf(other, 'sys/key_rotate'))[0]).not.toHaveProperty('reason')
    const governed = await newAgent(server, 'leaked-governed', 'governed')
    expect((await rotate(governed, reason)).status).toBe(202)
    expect(await bodiesOf(governed, 'sys/proposal')).toMatchObject([
      { action: 'rotate_key', reason: 'compromise' },
    ])
    expect((await rotate(free, { body: { reason: 'boredom' } })).status).toBe(400)
  })
})

describe('the zone of an agent', () => {
  it('changes immediately from free to every zone', async () => {
    for (const zone of zones) {
      const agent = await newAgent(server, `to-${zone}`)
      const { status: code, body } = await setZone(agent, zone)
      const head = await headOf(server, agent)
      expect([code, body]).toEqual([200, { agent_id: agent, zone, seq: 1, record_id: head?.chain_head }])
      expect((await status(agent)).zone).toBe(zone)
    }
  })

  it.each(['governed', 'protected', 'immutable_core'])('changes by a proposal from %s', async (zone) => {
    const agent = await newAgent(server, `from-${zone}`, zone)
    const proposed = await setZone(agent, 'free')
    expect(proposed.status).toBe(202)
    expect(proposed.body).toMatchObject({ proposal_id: `p_1_${agent}`, state: 'proposed' })
    expect(proposed.body.effective_at_ms === null).toBe(zone !== 'governed')
    expect((await status(agent)).zone).toBe(zone)
    const again = await expectUnchanged(server, agent, () => setZone(agent, 'protected'))
    expect([again.status, again.body.code, again.body.proposal_id]).toEqual([
      409,
      'proposal_open',
      `p_1_${agent}`,
    ])
  })

  it('is refused if it is invalid or the caller may not change it', async () => {
    const bad = [{ zone: 'open' }, {}, { zone: 'free', more: 1 }, []]
    for (const body of bad) {
      expect(await refusedUnchanged(() => setZone('a', 'free', { body }))).toEqual([400, 'validation_failed'])
    }
    const { key } = await scopedKey(server, ['records:write', 'proposals:decide'])
    const { key: elsewhere } = await scopedKey(server, ['agents:admin'], ['b'])
    for (const one of [key, elsewhere]) {
      expect(await refusedUnchanged(() => setZone('a', 'free', { key: one }))).toEqual([403, 'forbidden'])
      expect(await refusedUnchanged(() => rotate('a', { key: one }))).toEqual([403, 'forbidden'])
    }
    expect((await refusedUnchanged(() => setZone('a', 'free', { key: null })))[0]).toBe(401)
    expect((await refusedUnchanged(() => rotate('a', { key: null })))[0]).toBe(401)
    const raw = ' '.repeat(2_000)
    expect(await refusedUnchanged(() => setZone('a', 'free', { raw }))).toEqual([413, 'too_large'])
    expect(await refusedUnchanged(() => rotate('a', { raw }))).toEqual([413, 'too_large'])
    for (const absent of [await setZone('absent', 'free'), await rotate('absent')]) {
      expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
    }
  })

  it('honours If-Match and Idempotency-Key', async () => {
    const agent = await newAgent(server, 'careful')
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    for (const refused of [
      await setZone(agent, 'free', { headers: stale }),
      await rotate(agent, { headers: stale }),
    ]) {
      expect([refused.status, refused.body.code]).toEqual([412, 'head_mismatch'])
    }
    const headers = { 'idempotency-key': 'zone-once' }
    const first = await setZone(agent, 'free', { headers })
    const again = await setZone(agent, 'free', { headers })
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([first.text, 'true'])
    const keyed = { headers: { 'idempotency-key': 'key-once' } }
    const rotated = await rotate(agent, keyed)
    expect((await rotate(agent, keyed)).text).toBe(rotated.text)
    expect((await headOf(server, agent))?.seq).toBe(2)
  })

  // Regression: the seed was checked first. The seed of another agent was reported, and any other stayed
  // claimed.
  it('reports a used Idempotency-Key before it checks the seed', async () => {
    const agent = await newAgent(server, 'seeded')
    await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'owner', zone: 'free', seed_hex: seed('0e') },
    })
    const once = { headers: { 'idempotency-key': 'seed-once' }, body: { seed_hex: seed('5e') } }
    const rotated = await rotate(agent, once)
    expect(rotated.status).toBe(200)
    const again = await rotate(agent, once)
    expect([again.text, again.headers.get('idempotency-replayed')]).toEqual([rotated.text, 'true'])
    for (const other of ['0e', '5f']) {
      expect(
        await refusedUnchanged(() => rotate(agent, { ...once, body: { seed_hex: seed(other) } })),
      ).toEqual([422, 'idempotency_key_reused'])
    }
    const free = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'free', zone: 'free', seed_hex: seed('5f') },
    })
    expect(free.status).toBe(201)
    expect((await rotate(agent, { body: { seed_hex: seed('0e') } })).body.code).toBe('key_in_use')
  })
})

describe('rotating the key of an agent', () => {
  it('changes the key, and an export verifies with either key', async () => {
    const agent = await newAgent(server, 'rotated')
    const before = (await status(agent)).public_key
    await write(agent)
    const rotated = await rotate(agent, { body: { seed_hex: seed('ab') } })
    expect(rotated.status).toBe(200)
    await write(agent)
    const after = (await status(agent)).public_key
    expect(rotated.body).toMatchObject({ agent_id: agent, public_key: after, seq: 2 })
    expect(after).not.toBe(before)
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
    for (const publicKey of [before, after]) {
      expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({
        ok: true,
        keys: 2,
        publicKey: after,
      })
      expect(await verifyByClient(text, { publicKey })).toMatchObject({ ok: true, keys: 2 })
    }
    const note = (await checkedCall(server, `GET /v1/strand/checkpoint?agent=${agent}`)).text
    expect(verifyCheckpoint(note, after)).toMatchObject({ size: 4 })
    expect(verifyCheckpoint(note, before)).toBeUndefined()
  })

  it('verifies in parts; the part before the rotation has no checkpoint, because the server no longer has its key', async () => {
    const agent = await newAgent(server, 'parts')
    const before = (await status(agent)).public_key
    await write(agent)
    await rotate(agent)
    const after = (await status(agent)).public_key
    await write(agent)
    const part = async (from: number, to: number) => {
      const { text } = await checkedCall(
        server,
        `GET /v1/strand/export?agent=${agent}&from_seq=${from}&to_seq=${to}`,
      )
      return text.trimEnd().split('\n')
    }
    const parts: [from: number, to: number, key: string, checkpoint: boolean][] = [
      [0, 1, before, false],
      [0, 2, before, true],
      [2, 3, after, true],
      [3, 3, after, true],
    ]
    for (const [from, to, publicKey, checkpoint] of parts) {
      expect(await verifyExport(await part(from, to), { publicKey })).toMatchObject({ ok: true, checkpoint })
    }
    expect(JSON.parse((await part(3, 3))[0] ?? '').public_key).toBe(after)
  })

  it('answers 409 for the key of another agent, and for an earlier key of the agent', async () => {
    const body = { seed_hex: seed('cd') }
    const other = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'holder', zone: 'free', ...body },
    })
    expect(other.status).toBe(201)
    expect(await refusedUnchanged(() => rotate('a', { body }))).toEqual([409, 'key_in_use'])
    expect((await rotate('a', { body: { seed_hex: seed('ef') } })).status).toBe(200)
    expect((await rotate('a')).status).toBe(200)
    const back = () => rotate('a', { body: { seed_hex: seed('ef') } })
    expect(await refusedUnchanged(back)).toEqual([409, 'key_in_use'])
    for (const bad of [{ seed_hex: 'ab' }, { seed: seed('ab') }]) {
      expect(await refusedUnchanged(() => rotate('a', { body: bad }))).toEqual([400, 'validation_failed'])
    }
  })

  it('becomes a proposal if the zone requires it, and never shows the seed', async () => {
    const { key } = await scopedKey(server, ['proposals:decide'])
    const agent = await newAgent(server, 'waiting', 'protected')
    const proposed = await rotate(agent, { body: { seed_hex: seed('12') } })
    expect(proposed.status).toBe(202)
    const approved = await checkedCall(server, `POST /v1/proposals/${proposed.body.proposal_id}/approve`, {
      key,
    })
    const { public_key: publicKey } = await status(agent)
    expect(approved.body).toMatchObject({
      action: 'rotate_key',
      state: 'applied',
      change: { public_key: publicKey },
    })
    const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
    expect(await verifyExport(text.trimEnd().split('\n'), { publicKey })).toMatchObject({ ok: true, keys: 2 })
    expect(text + approved.text).not.toContain(seed('12'))
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(agentChangeRoutes)).toEqual([])
})
