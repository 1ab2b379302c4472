import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { register, usualPassword } from '../support/auth/accounts.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { runSeed } from '../support/run-seed.js'
import { changed, changes, expectNoFailure, fuzz } from '../support/faults/fuzzing.js'
import { jsonText, spoiled, spoilings } from '../support/faults/odd-json.js'
import { call, type TestAnswer, type TestServer } from '../support/server/server.js'

const seed = runSeed('fuzz-json')

let server: TestServer
let token = ''
let target = ''

beforeAll(async () => {
  server = await startAuthServer({
    env: {
      SERVICE_SHARDS: '2',
      SERVICE_WEBAUTHN_RP_ID: 'localhost',
      SERVICE_WEBAUTHN_ORIGIN: 'http://localhost:8787',
    },
  })
  await newAgent(server, 'fuzzed')
  await newAgent(server, 'other')
  await checkedCall(server, 'POST /v1/organisms', { body: { organism_id: 'acme', name: 'Acme' } })
  target = (await checkedCall(server, 'POST /v1/agents/fuzzed/records', { body: { data: { n: 0 } } })).body
    .record_id
  token = (await register(server, 'ann@example.org')).token
})
afterAll(() => server.stop())

async function headOf(agent: string): Promise<unknown> {
  return (await checkedCall(server, `GET /v1/agents/${agent}/head`)).body
}

/** Sends `raw`. Expects no server error, and no record if the request is refused. */
async function sent(route: string, raw: string | Uint8Array, key?: string): Promise<TestAnswer> {
  const before = await headOf('fuzzed')
  const answer = await checkedCall(server, route, { raw, ...(key !== undefined && { key }) })
  expectNoFailure(answer)
  if (answer.status >= 400) expect(await headOf('fuzzed'), answer.text).toEqual(before)
  return answer
}

/** The result of JSON.parse; undefined if the bytes are invalid. */
function parsed(bytes: Uint8Array): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)) }
  } catch {
    return undefined
  }
}

/** Replaces negative zero by zero, as the canonical form does (RFC 8785). */
function withoutNegativeZero(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

/** Sends a record. Expects that it is refused, or stored with the value that JSON.parse returns. */
async function record(raw: Uint8Array): Promise<TestAnswer> {
  const answer = await sent('POST /v1/agents/fuzzed/records', raw)
  if (answer.status >= 400) return answer
  expect(answer.status).toBe(201)
  const read = await checkedCall(server, `GET /v1/agents/fuzzed/records/${answer.body.record_id}`)
  expect({ data: read.body.payload }).toEqual({
    data: withoutNegativeZero(Object(parsed(raw)?.value)['data']),
  })
  return answer
}

describe('the body of a record', () => {
  it('is refused, or stored with the value that JSON.parse returns', async () => {
    const statuses = new Set<number>()
    // A record must be an object, so half of the values are put into one.
    const draw = fc.tuple(jsonText, fc.boolean(), fc.option(changes, { freq: 4 }))
    await fuzz({ seed, runs: 63, draw }, async ([text, alone, by]) => {
      const body = Buffer.from(alone ? `{"data":${text}}` : `{"data":{"drawn":${text}}}`)
      statuses.add((await record(by === null ? body : changed(body, by))).status)
    })
    expect([...statuses]).toEqual(expect.arrayContaining([201, 400]))
  })

  it('is accepted when it is valid', async () => {
    const draw = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 8 })).filter(isUnambiguous)
    await fuzz({ seed, runs: 25, draw }, async (data) => {
      const answer = await record(Buffer.from(JSON.stringify({ data })))
      expect(answer.status, answer.text).toBe(201)
    })
  })

  it('is refused when any value in it is invalid', async () => {
    const draw = fc.tuple(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 8 }), { minKeys: 1 }).filter(isUnambiguous),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      fc.constantFrom(...refusedValues),
    )
    await fuzz({ seed, runs: 25, draw }, async ([data, at, text]) => {
      const answer = await record(Buffer.from(`{"data":${spoiled(data, { how: 'replace', at, text })}}`))
      expect(answer.body.code, answer.text).toBe('validation_failed')
    })
  })
})

/** Values that are refused at any position in a body (docs/FORMAT.md, Body). */
const refusedValues = [
  '{"a":1,"a":1}',
  '{"a":1,"b":{},"\\u0061":2}',
  '{"\u{1f600}":1,"\\ud83d\\ude00":1}',
  '"\\ud800"',
  '["\\ud800x\\udc00"]',
  '{"\\udfff":0}',
  '{"__proto__":{}}',
  '{"\\u005f_proto__":1}',
  '{"a\\u0000":1}',
  '9007199254740992',
  '-9007199254740993',
  '123456789012345678901234567890',
  '1e400',
  '[-1e999]',
  '01',
  '"\t"',
  '[1,]',
  `${'['.repeat(64)}${']'.repeat(64)}`,
]

/**
 * Whether a value contains nothing that is refused (docs/FORMAT.md, Body): big integers, `__proto__`, NUL in
 * keys.
 */
function isUnambiguous(value: object): boolean {
  return !/(?<![.\d])\d{16,}(?![.\deE])|__proto__|\\u0000/.test(JSON.stringify(value))
}

/** Valid bodies of the routes that accept one. The test changes one value in each. */
const bodies: [route: string, body: () => unknown][] = [
  ['POST /v1/agents/fuzzed/records', () => ({ data: { a: [1, { b: 'c' }] }, type: 'reading' })],
  ['POST /v1/collections/fuzzed/records', () => ({ data: { a: 1 }, type: 'reading' })],
  [
    'POST /v1/agents/fuzzed/records/batch',
    () => ({ records: [{ data: { a: 1 } }, { data: { b: 2 }, type: 't' }], atomic: true }),
  ],
  [
    'POST /v1/agents/fuzzed/records/batch',
    () => ({ records: [{ data: { a: 1 } }, { data: { b: 2 } }], atomic: false }),
  ],
  ['POST /v1/ingest/fuzzed', () => ({ a: { b: [1, 2] } })],
  [
    'POST /v1/agents/fuzzed/query',
    () => ({
      type: 'latest',
      limit: 5,
      order: 'asc',
      types: ['reading', 'auth/*'],
      where: [{ field: 'a.b', op: 'in', value: [1, 'x'] }],
    }),
  ],
  [
    'POST /v1/agents/fuzzed/query',
    () => ({ type: 'time_range', from_ts: 0, to_ts: '2030-01-01T00:00:00Z', limit: 3 }),
  ],
  ['POST /v1/agents/fuzzed/query', () => ({ type: 'hash', hash: target })],
  ['POST /v1/agents/fuzzed/query', () => ({ type: 'chain_head' })],
  ['POST /v1/agents', () => ({ name: 'made', zone: 'free', seed_hex: 'ab'.repeat(32) })],
  ['PUT /v1/agents/fuzzed/zone', () => ({ zone: 'free' })],
  ['POST /v1/agents/fuzzed/rotate-key', () => ({ seed_hex: 'cd'.repeat(32) })],
  [
    'PUT /v1/agents/fuzzed/policies',
    () => ({
      policies: [
        { actions: ['read', 'write'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
      ],
    }),
  ],
  ['POST /v1/graph/edges', () => ({ src: 'fuzzed', dst: 'other', edge_type: 'knows', weight: 0.5 })],
  ['POST /v1/admin/api-keys', () => ({ name: 'key', scopes: ['records:read'], agents: ['fuzzed', 'f*'] })],
  [
    'POST /v1/organisms',
    () => ({ organism_id: 'other', name: 'Other', agents: [{ name: 'one', zone: 'free' }] }),
  ],
  ['POST /v1/organisms/acme/agents', () => ({ name: 'two', zone: 'governed' })],
]

/** Valid bodies of routes for users or without a credential. */
const authBodies: [route: string, body: unknown][] = [
  ['POST /v1/auth/register', { email: 'bob@example.org', password: usualPassword }],
  ['POST /v1/auth/login', { email: 'ann@example.org', password: 'a wrong guess' }],
  ['POST /v1/auth/refresh', { refresh_token: 'x'.repeat(43) }],
  ['POST /v1/auth/magic-link/send', { email: 'ann@example.org' }],
  ['POST /v1/auth/magic-link/verify', { token: 'x'.repeat(43) }],
  ['POST /v1/auth/verify-email/send', { email: 'ann@example.org' }],
  ['POST /v1/auth/verify-email', { token: 'x'.repeat(43) }],
  [
    'POST /v1/auth/password/change',
    { current_password: 'a wrong guess', new_password: 'another long phrase' },
  ],
  ['POST /v1/auth/password/reset-request', { email: 'ann@example.org' }],
  ['POST /v1/auth/password/reset', { token: 'x'.repeat(43), password: 'another long phrase' }],
  ['PATCH /v1/auth/me/user-metadata', { metadata: { a: { b: [1, null] } } }],
  ['POST /v1/auth/passkey/authenticate-challenge', { email: 'ann@example.org' }],
]

describe('the body of any other route', () => {
  it('is accepted, or refused with a documented code', async () => {
    const draw = fc.tuple(fc.constantFrom(...bodies), spoilings, fc.option(changes, { freq: 8 }))
    await fuzz({ seed, runs: 100, draw }, async ([[route, body], how, by]) => {
      const raw = Buffer.from(spoiled(body(), how))
      await sent(route, by === null ? raw : changed(raw, by))
    })
  })

  it('is accepted, or refused with a documented code, on routes of sign-in', async () => {
    const draw = fc.tuple(fc.constantFrom(...authBodies), spoilings, fc.option(changes, { freq: 8 }))
    await fuzz({ seed, runs: 38, draw }, async ([[route, body], how, by]) => {
      const raw = Buffer.from(spoiled(body, how))
      await sent(route, by === null ? raw : changed(raw, by), token)
    })
  })
})

describe('after these tests', () => {
  it('the server still works, and its strand verifies', async () => {
    expect((await call(server, 'GET /readyz')).status).toBe(200)
    const exported = await call(server, 'GET /v1/strand/export?agent=fuzzed')
    expect(await verifyExport(exported.text.trimEnd().split('\n'))).toMatchObject({ ok: true })
    expect(server.stderr()).toBe('')
  })
})
