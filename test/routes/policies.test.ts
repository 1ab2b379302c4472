import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Policy } from '../../src/auth/row-policy.js'
import { limits } from '../../src/base/limits/limits.js'
import { policyRoutes } from '../../src/front/routes/policies.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { type TestAnswer, type TestServer } from '../support/server/server.js'
import { signUp } from '../support/auth/users.js'

let server: TestServer
/** A token of a user of the root namespace. */
let token = ''

beforeAll(async () => {
  server = await startAuthServer()
  token = await signUp(server, 'someone@example.org')
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const ownRows: Policy = {
  actions: ['read', 'write', 'delete'],
  conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }],
}

const put = (policies: unknown, more: { headers?: Record<string, string>; key?: string | null } = {}) =>
  checkedCall(server, 'PUT /v1/agents/a/policies', { body: { policies }, ...more })

const shown = async (agent = 'a') => (await checkedCall(server, `GET /v1/agents/${agent}/policies`)).body

async function refusedUnchanged(action: () => Promise<TestAnswer>): Promise<[number, string, unknown[]]> {
  const before = await shown()
  const { status, body } = await expectUnchanged(server, 'a', action)
  expect(await shown()).toEqual(before)
  return [status, body.code, (body.errors ?? []).map(({ pointer }: { pointer: string }) => pointer)]
}

describe('replacing the policies of an agent', () => {
  it('returns the current policies and the record of the change', async () => {
    expect(await shown()).toEqual({ agent_id: 'a', policies: [], pending: null })
    const { status, body } = await put([ownRows])
    expect(status).toBe(200)
    const head = await headOf(server, 'a')
    expect(body).toEqual({
      agent_id: 'a',
      policies: [ownRows],
      warnings: [],
      seq: head?.seq,
      record_id: head?.chain_head,
    })
    expect(await shown()).toEqual({ agent_id: 'a', policies: [ownRows], pending: null })
    const record = await checkedCall(server, `GET /v1/agents/a/records/${body.record_id}`)
    expect(record.body).toMatchObject({ type: 'sys/policy', payload: { policies: [ownRows] } })
    expect((await put([])).body.policies).toEqual([])
    expect((await shown()).policies).toEqual([])
  })

  it('warns about metadata that users write themselves', async () => {
    const conditions = [{ field: 'team', op: 'eq', value: '$jwt.user_metadata.team' }]
    const { status, body } = await put([ownRows, { actions: ['read'], conditions }])
    expect(status).toBe(200)
    expect(body.warnings).toEqual([expect.stringContaining('/policies/1/conditions/0')])
    expect(body.warnings[0]).toContain('$jwt.user_metadata')
  })

  it('warns about an unproven e-mail, but not about a proven one', async () => {
    const conditions = [
      { field: 'owner', op: 'eq', value: '$jwt.email' },
      { field: 'owner', op: 'in', value: ['$jwt.verified_email', '$jwt.email', '$jwt.user_metadata.other'] },
      { field: 'owner', op: 'eq', value: '$jwt.verified_email' },
    ]
    const { status, body } = await put([{ actions: ['read'], conditions }])
    expect(status).toBe(200)
    expect(body.warnings).toHaveLength(3)
    expect(body.warnings[0]).toMatch(/^\/policies\/0\/conditions\/0 .*\$jwt\.email.*\$jwt\.verified_email/)
    expect(body.warnings[1]).toMatch(/^\/policies\/0\/conditions\/1 .*\$jwt\.email/)
    expect(body.warnings[2]).toMatch(/^\/policies\/0\/conditions\/1 .*\$jwt\.user_metadata/)
  })

  const condition = (one: object) => [{ actions: ['read'], conditions: [one] }]
  it.each([
    ['an object instead of a list', {}, '/policies'],
    ['a policy without actions', [{ actions: [], conditions: [] }], '/policies/0/actions'],
    ['an unknown action', [{ actions: ['destroy'], conditions: [] }], '/policies/0/actions/0'],
    ['an invalid type', [{ ...ownRows, types: ['A'] }], '/policies/0/types/0'],
    ['no type', [{ ...ownRows, types: [] }], '/policies/0/types'],
    ['a policy without conditions', [{ actions: ['read'] }], '/policies/0/conditions'],
    ['another member', [{ ...ownRows, name: 'x' }], '/policies/0/name'],
    ['an unknown operator', condition({ field: 'a', op: 'like', value: 1 }), '/policies/0/conditions/0/op'],
    ['no value', condition({ field: 'a', op: 'eq' }), '/policies/0/conditions/0/value'],
    [
      'a path through __proto__',
      condition({ field: 'a.__proto__.b', op: 'eq', value: 1 }),
      '/policies/0/conditions/0/field',
    ],
    ['no JSON Pointer', condition({ field: '/a~b', op: 'eq', value: 1 }), '/policies/0/conditions/0/field'],
    [
      'a claim through __proto__',
      condition({ field: 'a', op: 'eq', value: '$jwt.app_metadata.__proto__' }),
      '/policies/0/conditions/0/value',
    ],
    [
      'an unknown claim',
      condition({ field: 'a', op: 'eq', value: '$jwt.role' }),
      '/policies/0/conditions/0/value',
    ],
    [
      'in with 1,001 items',
      condition({ field: 'a', op: 'in', value: Array.from({ length: 1_001 }, (_, n) => n) }),
      '/policies/0/conditions/0/value',
    ],
    ['in without a list', condition({ field: 'a', op: 'in', value: 'x' }), '/policies/0/conditions/0/value'],
  ])('is refused with %s', async (_name, policies, pointer) => {
    const [status, code, pointers] = await refusedUnchanged(() => put(policies))
    expect([status, code]).toEqual([400, 'validation_failed'])
    expect(pointers).toContain(pointer)
  })

  it('is refused with a key named __proto__ in a value', async () => {
    const raw =
      '{"policies":[{"actions":["read"],"conditions":[{"field":"a","op":"eq","value":{"__proto__":1}}]}]}'
    const [status] = await refusedUnchanged(() => checkedCall(server, 'PUT /v1/agents/a/policies', { raw }))
    expect(status).toBe(400)
  })

  it('accepts the maximum number of policies and conditions, and no more', async () => {
    const one = { actions: ['read'], conditions: [] }
    const conditions = Array.from({ length: limits.whereConditionsMax }, () => ({
      field: 'a',
      op: 'eq',
      value: 1,
    }))
    const full = [
      { actions: ['read'], conditions },
      ...Array.from({ length: limits.policiesMax - 1 }, () => one),
    ]
    expect((await put(full)).status).toBe(200)
    expect((await refusedUnchanged(() => put([...full, one])))[0]).toBe(400)
    const long = [{ actions: ['read'], conditions: [...conditions, conditions[0]] }]
    expect((await refusedUnchanged(() => put(long)))[0]).toBe(400)
    const big = [
      {
        actions: ['read'],
        conditions: [{ field: 'a', op: 'eq', value: 'x'.repeat(limits.requestBytesMax) }],
      },
    ]
    expect((await refusedUnchanged(() => put(big))).slice(0, 2)).toEqual([413, 'too_large'])
  })

  // Regression: with claims of 4 KB that were used 2,600 times, 460 streams of a user ended the process.
  it('is refused if the claims of a user could make the grant too large', async () => {
    const claim = (steps: number) => `$jwt.user_metadata${'.a'.repeat(steps)}`
    const list = (values: string[]) => condition({ field: 'a', op: 'in', value: values })
    const often = Array.from({ length: 3 }, () => list(Array.from({ length: 850 }, () => claim(1)))).flat()
    const nested = list(Array.from({ length: 20 }, (_none, n) => claim(n + 1)))
    for (const [policies, pointer] of [
      [often, '/policies/2/conditions/0/value'],
      [nested, '/policies'],
    ] as const) {
      const [status, code, pointers] = await refusedUnchanged(() => put(policies))
      expect([status, code]).toEqual([400, 'validation_failed'])
      expect(pointers).toContain(pointer)
    }
    // A claim counts once, however many policies use it.
    const tenants = Array.from({ length: limits.policiesMax }, () =>
      condition({ field: 'tenant', op: 'eq', value: '$jwt.app_metadata.tenant' }),
    )
    expect((await put(tenants.flat())).status).toBe(200)
  })

  it('requires a key with the scope to administer agents that reaches the agent', async () => {
    const writer = await scopedKey(server, ['records:read', 'records:write', 'ingest'])
    const elsewhere = await scopedKey(server, ['agents:admin'], ['b*'])
    const admin = await scopedKey(server, ['agents:admin'], ['a'])
    for (const key of [writer.key, elsewhere.key, token]) {
      expect((await refusedUnchanged(() => put([ownRows], { key }))).slice(0, 2)).toEqual([403, 'forbidden'])
      const read = await checkedCall(server, 'GET /v1/agents/a/policies', { key })
      expect([read.status, read.body.code]).toEqual([403, 'forbidden'])
    }
    expect((await refusedUnchanged(() => put([ownRows], { key: null })))[0]).toBe(401)
    expect((await put([ownRows], { key: admin.key })).status).toBe(200)
  })

  it('answers 404 for a missing agent', async () => {
    for (const method of ['PUT', 'GET']) {
      const body = method === 'PUT' ? { body: { policies: [] } } : {}
      const { status, body: problem } = await checkedCall(
        server,
        `${method} /v1/agents/absent/policies`,
        body,
      )
      expect([status, problem.code]).toEqual([404, 'agent_not_found'])
    }
    expect(await headOf(server, 'absent')).toBeUndefined()
  })

  it.each(['immutable_core', 'protected', 'governed'])('needs approvals in zone %s', async (zone) => {
    const agent = await newAgent(server, `zone-${zone}`, zone)
    const call = { body: { policies: [ownRows] } }
    const { status, body } = await checkedCall(server, `PUT /v1/agents/${agent}/policies`, call)
    expect([status, body.state]).toEqual([202, 'proposed'])
    const again = await expectUnchanged(server, agent, () =>
      checkedCall(server, `PUT /v1/agents/${agent}/policies`, call),
    )
    const atMs: number | null = body.effective_at_ms
    expect([again.status, again.body]).toMatchObject([
      409,
      { code: 'proposal_open', proposal_id: body.proposal_id, effective_at_ms: atMs },
    ])
    expect([atMs === null, again.body.detail]).toEqual([
      zone !== 'governed',
      `Another proposal about the same target is open${atMs === null ? '' : ` until it takes effect at ${new Date(atMs).toISOString()}`}`,
    ])
    const { policies, pending } = await shown(agent)
    expect(policies).toEqual([])
    const { proposal_id: id } = body
    expect(pending).toEqual({ proposal_id: id, policies: [ownRows], effective_at_ms: atMs })
    expect([body.detail.startsWith(`Zone ${zone}: `), body.warnings]).toEqual([true, []])
    const read = await checkedCall(server, `GET /v1/agents/${agent}/status`, { key: token })
    const isDelayed = zone === 'governed'
    expect([read.status, read.body.code]).toEqual([403, isDelayed ? 'policy_pending' : 'forbidden'])
    if (isDelayed) expect(read.body.effective_at_ms).toBe(atMs)
  })

  it('honours If-Match', async () => {
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    expect((await refusedUnchanged(() => put([], { headers: stale }))).slice(0, 2)).toEqual([
      412,
      'head_mismatch',
    ])
    const head = await headOf(server, 'a')
    expect((await put([], { headers: { 'if-match': `"${head?.chain_head}"` } })).status).toBe(200)
  })

  it('honours an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'policies-once' }
    const first = await put([ownRows], { headers })
    await put([])
    const again = await put([ownRows], { headers })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.text).toBe(first.text)
    expect((await shown()).policies).toEqual([])
    expect((await refusedUnchanged(() => put([], { headers }))).slice(0, 2)).toEqual([
      422,
      'idempotency_key_reused',
    ])
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(policyRoutes)).toEqual([])
})
