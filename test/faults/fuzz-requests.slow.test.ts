import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allRoutes } from '../../src/front/routes/routes.js'
import { register } from '../support/auth/accounts.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { runSeed } from '../support/run-seed.js'
import { expectNoFailure, fuzz, headerText, oddText, rawAsk, rawCall } from '../support/faults/fuzzing.js'
import { fill } from '../support/shard/imports.js'
import { newOrganism } from '../support/auth/organisms.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Random paths, queries and headers for every route: each answer is one that the route documents.
 */

const seed = runSeed('fuzz-requests')

let server: TestServer
let token = ''
/** Names and hashes that exist. */
const existing: string[] = ['fuzzed', 'default', 'acme', 'acme::one', 'ann@example.org', 'github', 'knows']

beforeAll(async () => {
  server = await startAuthServer({
    env: { SERVICE_SHARDS: '2', SERVICE_CORS_ORIGINS: 'https://app.example' },
  })
  await newAgent(server, 'fuzzed')
  await newOrganism(server, 'acme', { agents: ['one'] })
  existing.push(...(await fill(server, 'fuzzed', { from: 0, count: 5 })))
  await checkedCall(server, 'POST /v1/graph/edges', {
    body: { src: 'fuzzed', dst: 'default', edge_type: 'knows' },
  })
  token = (await register(server, 'ann@example.org')).token
})
afterAll(() => server.stop())

/** An index in `existing`, or any text. */
type Drawn = number | string

const drawn: fc.Arbitrary<Drawn> = fc.oneof(
  { weight: 3, arbitrary: fc.nat() },
  { weight: 2, arbitrary: oddText },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '0',
      '1',
      '1000',
      '1001',
      '-1',
      '1e3',
      '2026-01-01T00:00:00Z',
      'ffffffffffff-ffff',
      'in',
      'free',
      'group',
      'reject_all',
    ),
  },
)

function textOf(value: Drawn): string {
  return typeof value === 'string' ? value : (existing[value % existing.length] ?? '')
}

/** Encodings of a text in a path or a query. A request target contains no blanks or control characters. */
const spellings: Record<string, (text: string) => string> = {
  usual: (text) => new URLSearchParams({ '': text }).toString().slice(1).replaceAll('+', '%20'),
  plus: (text) => new URLSearchParams({ '': text }).toString().slice(1),
  everyByte: (text) => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&').slice(0, 3_000),
  latin1: (text) => Buffer.from(text, 'latin1').toString('hex').replaceAll(/../g, '%$&').slice(0, 3_000),
  plain: (text) => text.replaceAll(/[^\x21-\x7e\x80-\xff]|[#?/]/g, ''),
  twice: (text) => encodeURIComponent(spellings['usual']?.(text) ?? ''),
  broken: (text) => `${spellings['usual']?.(text)}%`,
  overlong: (text) => `${spellings['usual']?.(text)}%c0%af`,
  nul: (text) => `${spellings['usual']?.(text)}%00`,
}
const spelling = fc.constantFrom('usual', 'usual', 'usual', ...Object.keys(spellings))

const spelled = fc.tuple(drawn, spelling)

function spell([value, how]: [Drawn, string]): string {
  return (spellings[how]?.(textOf(value)) ?? '').slice(0, 3_000)
}

const headers = fc.dictionary(
  fc.constantFrom(
    'if-match',
    'idempotency-key',
    'content-type',
    'content-encoding',
    'last-event-id',
    'x-request-id',
    'origin',
    'x-forwarded-for',
    'strandfast-agent-seed',
    'cookie',
    'user-agent',
    'accept',
    'accept-encoding',
    'range',
    'if-none-match',
    'x-http-method-override',
  ),
  fc.oneof(
    drawn,
    fc.constantFrom(
      '*',
      '""',
      `"${'0'.repeat(64)}"`,
      'W/"x"',
      'application/json',
      'application/json; charset=utf-16',
      'application/x-ndjson',
      'application/problem+json',
      'text/plain',
      'gzip',
      'gzip, gzip',
      'br',
      'https://app.example',
      'null',
      '::1, 1.2.3.4',
      'a=b; c="d',
      'bytes=0-1',
      'DELETE',
    ),
  ),
  { maxKeys: 4 },
)

const credentials = fc.oneof(
  { weight: 8, arbitrary: fc.constant('root') },
  { weight: 2, arbitrary: fc.constant('user') },
  { weight: 1, arbitrary: oddText },
)

function authorizationOf(credential: string): string {
  if (credential === 'root') return `Bearer ${server.rootKey}`
  return credential === 'user' ? `Bearer ${token}` : headerText(credential)
}

const bodies = fc.constantFrom(
  undefined,
  '',
  '{}',
  '{"data":{"n":1}}',
  '{"records":[{"data":{}}]}',
  '{"n":1}\n{"n":2}\n',
  'null',
)

/** All routes by method and path. */
const routes = new Map(
  allRoutes('default').map((route) => {
    const method = route.method === 'del' ? 'DELETE' : route.method.toUpperCase()
    return [`${method} ${route.path}`, route]
  }),
)

const requests = fc.constantFrom(...routes.keys()).chain((route) =>
  fc.record({
    route: fc.constant(route),
    parameters: fc.array(spelled, { minLength: 4, maxLength: 4 }),
    query: fc.array(
      fc.tuple(
        fc.constantFrom(
          ...Object.keys(routes.get(route)?.docs.query ?? {}),
          'ticket',
          'signing',
          'unknown',
          '',
        ),
        spelled,
      ),
      { maxLength: 4 },
    ),
    headers,
    credential: credentials,
    body: bodies,
  }),
)

type Request = typeof requests extends fc.Arbitrary<infer R> ? R : never

/** A usual request to an agent. */
function plain(route: string, agent: string, changes: Partial<Request> = {}): Request {
  const parameters = Array.from({ length: 4 }, (): [Drawn, string] => [agent, 'usual'])
  return { route, parameters, query: [], headers: {}, credential: 'root', body: undefined, ...changes }
}

/** One request for each status that must occur, because random requests may never write anything. */
const examples = new Map([
  [200, plain('GET /v1/agents/:agent/head', 'fuzzed')],
  [201, plain('POST /v1/collections/:name/records', 'fuzzed', { body: '{"data":{"n":1}}' })],
  [400, plain('POST /v1/collections/:name/records', 'fuzzed', { body: 'null' })],
  [401, plain('GET /v1/agents/:agent/head', 'fuzzed', { credential: 'nonsense' })],
  [403, plain('GET /v1/agents/:agent/head', 'fuzzed', { credential: 'user' })],
  [404, plain('GET /v1/agents/:agent/head', 'unknown')],
])

/** Long answers are compressed on request. */
const compressed = ['br', 'gzip'].map((coding) =>
  plain('GET /openapi.json', 'fuzzed', { headers: { 'accept-encoding': coding } }),
)

async function headOf(agent: string): Promise<unknown> {
  return (await checkedCall(server, `GET /v1/agents/${agent}/head`)).body
}

describe('a request', () => {
  it('gets an answer that its route documents, with any path, query and headers', async () => {
    const statuses = new Map<number, number>()
    const fuzzing = {
      seed,
      runs: 250,
      draw: requests,
      examples: [...examples.values(), ...compressed],
    }
    await fuzz(fuzzing, async (request) => {
      const [method = '', pattern = ''] = request.route.split(' ')
      let parameter = 0
      const path = pattern.replaceAll(
        /:[a-z_]+/g,
        () => spell(request.parameters[parameter++] ?? [0, 'usual']) || '-',
      )
      const query = request.query.map(([name, value]) => `${name}=${spell(value)}`).join('&')
      const before = method === 'GET' ? undefined : await headOf('fuzzed')
      const answer = await rawAsk(server, {
        method,
        path: query === '' ? path : `${path}?${query}`,
        headers: {
          authorization: authorizationOf(request.credential),
          ...Object.fromEntries(
            Object.entries(request.headers).map(([name, value]) => [name, headerText(textOf(value))]),
          ),
        },
        ...(method !== 'GET' && request.body !== undefined && { body: request.body }),
      })
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (before !== undefined && answer.status >= 400) expect(await headOf('fuzzed')).toEqual(before)
    })
    for (const [status, { route }] of examples) {
      expect(routes.has(route), route).toBe(true)
      expect([...statuses.keys()]).toContain(status)
    }
  })

  it('gets an answer without a server error, with any path and method', async () => {
    const part = fc.oneof(
      spelled.map(spell),
      fc.constantFrom('v1', 'agents', 'auth', '..', '.', '%2e%2e', '', '*', ';', 'docs', 'organisms'),
    )
    const draw = fc.tuple(
      fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'),
      fc.array(part, { maxLength: 8 }),
      fc.string().map((text) => spell([text, 'plain'])),
    )
    await fuzz({ seed, runs: 50, draw }, async ([method, parts, query]) => {
      const answer = await rawCall(server, { method, path: `/${parts.join('/')}?${query}`.slice(0, 12_000) })
      expectNoFailure(answer)
      expect(answer.headers.get('x-request-id')).not.toBeNull()
      if (answer.status >= 400) expect(answer.body.status).toBe(answer.status)
    })
  })

  it('leaves the server working', async () => {
    expect((await call(server, 'GET /readyz')).status).toBe(200)
    expect(server.stderr()).toBe('')
  })
})
