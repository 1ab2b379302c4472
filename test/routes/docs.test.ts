import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { docsRoutes } from '../../src/front/routes/docs.js'
import { allRoutes } from '../../src/front/routes/routes.js'
import { checkedCall, expectUnchanged, untestedSuccesses } from '../support/http/answers.js'
import { programWith, type ConsoleProgram } from '../support/server/console-program.js'
import { startServer, type TestServer } from '../support/server/server.js'

let built: ConsoleProgram
let server: TestServer

beforeAll(async () => {
  // A build without a console has no routes for it.
  built = programWith({ 'index.html': '<!doctype html>' })
  server = await startServer({ program: built.program })
})
afterAll(async () => {
  await server.stop()
  built.remove()
})

it('shows every route as OpenAPI 3.1, without a credential', async () => {
  const { body } = await checkedCall(server, 'GET /openapi.json', { key: null })
  expect(body.openapi).toBe('3.1.0')
  expect(body.info.version).toMatch(/^\d+\.\d+\.\d+/)
  for (const { method, path } of allRoutes('default')) {
    const item = body.paths[path.replaceAll(/:(\w+)/g, '{$1}')]
    // The routes of organisms' namespaces are described once, together with those of the root namespace.
    const root = path.replace('/organisms/:organism_id/auth/', '/auth/').replaceAll(/:(\w+)/g, '{$1}')
    const operation = (item?.$ref === undefined ? item : body.paths[root])?.[
      method === 'del' ? 'delete' : method
    ]
    expect(operation, `${method} ${path}`).toBeDefined()
  }
})

it('has unique operation ids', async () => {
  const { body } = await checkedCall(server, 'GET /openapi.json', { key: null })
  const items: Record<string, { operationId?: string }>[] = Object.values(body.paths)
  const ids = items.flatMap((item) => Object.values(item).flatMap(({ operationId }) => operationId ?? []))
  expect(ids.length).toBeGreaterThan(100)
  expect(ids.filter((id, place) => ids.indexOf(id) !== place)).toEqual([])
})

it('serves a page that loads nothing from another host', async () => {
  const { text, headers } = await checkedCall(server, 'GET /docs', { key: null })
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(text).not.toMatch(/(?:src|href)="?https?:/)
})

it('answers each file of the page, and 304 to a client that already has it', async () => {
  const { text } = await checkedCall(server, 'GET /docs', { key: null })
  const names = [...text.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, name]) => `/${name}`)
  expect(names.length).toBe(2)
  for (const path of ['/docs', ...names.filter((name) => name.endsWith('.js'))]) {
    const whole = await checkedCall(server, `GET ${path}`, { key: null })
    const headers = { 'if-none-match': whole.headers.get('etag') ?? '' }
    expect([path, whole.status]).toEqual([path, 200])
    expect((await checkedCall(server, `GET ${path}`, { key: null, headers })).status).toBe(304)
  }
  expect((await checkedCall(server, 'GET /docs/none-00000000.js', { key: null })).status).toBe(404)
})

it('answers 404 for an unknown path, with and without a credential', async () => {
  for (const path of ['/v1', '/v1/nothing', '/docs/', '/v1/agents/a/nothing', '/%00', '/..%2f..']) {
    const refused = await checkedCall(server, `GET ${path}`, { key: null })
    expect([path, refused.status, refused.body.code]).toEqual([path, 404, 'not_found'])
  }
})

it('refuses unknown query parameters, and lists the known ones', async () => {
  const wide = await checkedCall(server, 'GET /v1/agents?limt=3&prefix=a&sorted')
  expect([wide.status, wide.body.code]).toEqual([400, 'validation_failed'])
  expect(wide.body.detail).toBe(
    'Unknown query parameter "limt", expected "limit", "cursor", "prefix", "contains", "include"',
  )
  expect(wide.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(['?limt', '?sorted'])
  const none = await checkedCall(server, 'GET /v1/agents/default/head?at=1')
  expect([none.status, none.body.detail]).toEqual([400, 'Unknown query parameter "at", expected none'])
  await expectUnchanged(server, 'default', async () => {
    const write = await checkedCall(server, 'POST /v1/agents/default/records?sign=group', {
      body: { data: {} },
    })
    expect([write.status, write.body.code]).toEqual([400, 'validation_failed'])
  })
  const many = Array.from({ length: 500 }, (_none, at) => `${'%41'.repeat(3)}${at}=1`).join('&')
  const bounded = await checkedCall(server, `GET /v1/agents?${many}`)
  expect([bounded.status, bounded.body.errors.length]).toEqual([400, limits.faultsMax])
  // A client without a credential learns nothing about a route.
  expect((await checkedCall(server, 'GET /v1/agents?limt=3', { key: null })).status).toBe(401)
})

// Regression: one of the two values was used silently; an export of two agents contained only the first.
it('refuses a repeated query parameter, unless it is a list', async () => {
  const twice = await checkedCall(server, 'GET /v1/strand/export?agent=default&from_seq=0&agent=b&agent=c')
  expect([twice.status, twice.body.errors]).toMatchObject([
    400,
    [{ pointer: '?agent', detail: 'Expected the query parameter "agent" once' }],
  ])
  await expectUnchanged(server, 'default', async () => {
    for (const query of ['on_error=keep&on_error=skip', 'signing=group&signing=group']) {
      const write = await checkedCall(server, `POST /v1/ingest/default?${query}`, { body: {} })
      expect([write.status, write.body.code], query).toEqual([400, 'validation_failed'])
    }
  })
  const listed = await checkedCall(
    server,
    'GET /v1/metrics?names=strandfast_agents,a&names=strandfast_fronts',
  )
  expect(listed.status).toBe(200)
})

it('accepts unknown query parameters on routes where probes, mails and providers add their own', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/magic-link'])
    expect((await checkedCall(server, `GET ${path}?utm_source=x`, { key: null })).status).toBe(200)
  const back = await checkedCall(server, 'GET /v1/auth/oauth/google/callback?state=x&scope=openid', {
    key: null,
  })
  expect(back.body.detail).not.toContain('Unknown query parameter')
})

it.each(['br', 'gzip'])(
  'sends its documents with coding %s on request, and HEAD returns the same headers',
  async (coding) => {
    const page = await (await fetch(`${server.url}/docs`)).text()
    const [script] = /docs\/main-\w+\.js/.exec(page) ?? []
    for (const path of ['/openapi.json', `/${script}`]) {
      const plain = await fetch(server.url + path, { headers: { 'accept-encoding': 'identity' } })
      const sent = await fetch(server.url + path, { headers: { 'accept-encoding': coding } })
      const head = await fetch(server.url + path, { method: 'HEAD', headers: { 'accept-encoding': coding } })
      expect([plain.headers.get('content-encoding'), sent.headers.get('content-encoding')]).toEqual([
        null,
        coding,
      ])
      for (const { headers } of [plain, sent, head])
        expect(headers.get('vary')).toBe('Accept-Encoding, Origin')
      const length = Number(sent.headers.get('content-length'))
      expect(length).toBeLessThan(Number(plain.headers.get('content-length')) / 2)
      expect(head.headers.get('content-length')).toBe(String(length))
      expect(await sent.text()).toBe(await plain.text())
    }
  },
)

it('compresses pages, but no secrets, streams or problems', async () => {
  const headers = {
    authorization: `Bearer ${server.rootKey}`,
    'accept-encoding': 'gzip',
    'content-type': 'application/json',
  }
  const records = Array.from({ length: 60 }, (_none, n) => ({ data: { n, text: 'boiler '.repeat(20) } }))
  await checkedCall(server, 'POST /v1/agents/default/records/batch', { body: { records } })
  const codingOf = async (path: string, body?: object) => {
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(server.url + path, init)
    await answer.body?.cancel()
    return answer.headers.get('content-encoding')
  }
  expect(await codingOf('/v1/agents/default/query', { type: 'latest', limit: 60 })).toBe('gzip')
  expect(await codingOf('/v1/strand/as-of?ts=2100-01-01T00:00:00Z')).toBe('gzip')
  expect(await codingOf('/v1/strand/export')).toBe('gzip')
  expect(await codingOf('/v1/agents')).toBeNull()
  expect(await codingOf('/metrics')).toBeNull()
  expect(await codingOf('/v1/stream')).toBeNull()
  expect(await codingOf('/v1/admin/api-keys', { name: 'n'.repeat(5_000), scopes: ['x'] })).toBeNull()
})

it('answers 405 with the allowed methods', async () => {
  const cases = [
    ['PUT /v1/agents', 'GET, HEAD, POST'],
    ['PATCH /v1/agents/a/records', 'POST'],
    ['PUT /v1/agents/a/records/b', 'DELETE, GET, HEAD'],
    ['DELETE /openapi.json', 'GET, HEAD'],
    ['GET /v1/agents/a/query', 'POST'],
    ['GET /v1/admin/api-keys/key_1', 'DELETE'],
  ] as const
  for (const [route, allow] of cases) {
    const refused = await checkedCall(server, route)
    expect([route, refused.status, refused.body.code]).toEqual([route, 405, 'method_not_allowed'])
    expect(refused.headers.get('allow')).toBe(allow)
  }
})

it('answers invalid values of any parameter of any route, never with 5xx', async () => {
  const routes = allRoutes('default').filter(({ path }) => path !== '/readyz' && path !== '/metrics')
  const texts = fc.oneof(
    fc.constantFrom('', '0', '-1', '1e999', 'null', '*', 'a::b', '..', '%', '\0', '\ud800\udc00', 'default'),
    fc.constantFrom('281474976710656', '9007199254740993', 'ffffffffffff-ffff', '9999-12-31', '0'.repeat(64)),
    fc.constantFrom('x'.repeat(3_000), 'é'.repeat(700), `"${'f'.repeat(64)}"`),
    fc.string({ unit: 'binary', maxLength: 40 }),
  )
  const names = [
    'agent',
    'hash',
    'from_seq',
    'to_seq',
    'limit',
    'cursor',
    'prefix',
    'since',
    'filter',
    'agents',
  ]
  const query = fc.dictionary(fc.constantFrom(...names, 'ticket', 'signing', 'on_error', 'ts'), texts)
  const bodies = fc.oneof(
    fc.json(),
    texts,
    fc
      .record({ type: texts, data: fc.jsonValue(), name: texts, zone: texts })
      .map((one) => JSON.stringify(one)),
  )
  const ascii = fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  })
  const headers = fc.dictionary(
    fc.constantFrom(
      'if-match',
      'idempotency-key',
      'last-event-id',
      'content-type',
      'content-encoding',
      'origin',
    ),
    fc.oneof(ascii, fc.constantFrom('gzip', 'application/x-ndjson', 'ffffffffffff-ffff', '281474976710654')),
  )
  const requests = fc.record({
    route: fc.constantFrom(...routes),
    params: fc.array(texts, { minLength: 2, maxLength: 2 }),
    query,
    raw: bodies,
    headers,
  })
  const property = fc.asyncProperty(requests, async ({ route, params, query, raw, headers }) => {
    const left = [...params]
    const path = route.path.replaceAll(/:\w+/g, () => encodeURIComponent(left.shift() ?? ''))
    const target = `${path}?${new URLSearchParams(query)}`
    const method = route.method === 'del' ? 'DELETE' : route.method.toUpperCase()
    const response = await fetch(server.url + target, {
      method,
      headers: { ...headers, authorization: `Bearer ${server.rootKey}` },
      ...(method === 'GET' ? {} : { body: raw }),
    })
    // Streams stay open, so only their head is checked.
    await response.body?.cancel()
    expect(response.status).toBeLessThan(500)
  })
  await fc.assert(property, { numRuns: 600 })
  expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
})

it('echoes a valid X-Request-Id, and replaces an invalid one', async () => {
  const echoed = await checkedCall(server, 'GET /openapi.json', { headers: { 'x-request-id': 'mine-1' } })
  expect(echoed.headers.get('x-request-id')).toBe('mine-1')
  const refused = await checkedCall(server, 'GET /nothing', { headers: { 'x-request-id': 'mine-2' } })
  expect(refused.body.request_id).toBe('mine-2')
  for (const unsound of ['with a space', 'x'.repeat(129)]) {
    const made = await checkedCall(server, 'GET /openapi.json', { headers: { 'x-request-id': unsound } })
    expect(made.headers.get('x-request-id')).not.toBe(unsound)
  }
  const one = await checkedCall(server, 'GET /healthz')
  const other = await checkedCall(server, 'GET /healthz')
  expect(one.headers.get('x-request-id')).not.toBe(other.headers.get('x-request-id'))
})

it('allows no origin by default', async () => {
  const { headers } = await checkedCall(server, 'GET /openapi.json', {
    headers: { origin: 'https://app.example' },
  })
  expect(headers.get('access-control-allow-origin')).toBeNull()
})

it('limits each address before it checks credentials, and announces when to retry', async () => {
  const limited = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '2', SERVICE_RATE_LIMIT_BURST: '4' } })
  try {
    const pending = Array.from({ length: 40 }, () =>
      checkedCall(limited, 'GET /v1/agents', { key: 'no-key' }),
    )
    const answers = await Promise.all(pending)
    const refused = answers.filter(({ status }) => status === 429)
    expect(refused.length).toBeGreaterThan(0)
    expect(answers.filter(({ status }) => status === 401).length).toBe(40 - refused.length)
    expect(refused.length).toBeLessThan(40)
    for (const { body, headers } of refused) {
      expect(body.code).toBe('rate_limited')
      expect(headers.get('retry-after')).toBe('1')
      expect(headers.get('ratelimit')).toBe('"global";r=0;t=1')
      expect(headers.get('ratelimit-policy')).toBe('"global";q=4;w=2')
    }
  } finally {
    await limited.stop()
  }
})

describe('a server with other settings', () => {
  let open: TestServer

  beforeAll(async () => {
    open = await startServer({
      env: {
        SERVICE_CONSOLE: 'false',
        SERVICE_CORS_ORIGINS: 'https://app.example',
        SERVICE_WEBHOOK_ORIGINS: 'eventgrid.azure.net',
        SERVICE_RATE_LIMIT_RPS: '50',
      },
    })
  })
  afterAll(() => open.stop())

  it('serves the page if the console is disabled', async () => {
    expect((await checkedCall(open, 'GET /docs', { key: null })).status).toBe(200)
    expect((await checkedCall(open, 'GET /console', { key: null })).status).toBe(404)
  })

  it('allows exactly the configured origins', async () => {
    const allowed = { origin: 'https://app.example' }
    const read = await checkedCall(open, 'GET /v1/agents', { headers: allowed })
    expect(read.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(read.headers.get('vary')).toBe('Origin')
    expect(read.headers.get('access-control-expose-headers')).toContain('ETag')
    const refused = await checkedCall(open, 'GET /v1/agents', { key: null, headers: allowed })
    expect(refused.headers.get('access-control-allow-origin')).toBe('https://app.example')
    for (const origin of ['https://app.example.evil', 'http://app.example', 'null']) {
      const { headers } = await checkedCall(open, 'GET /v1/agents', { headers: { origin } })
      expect(headers.get('access-control-allow-origin')).toBeNull()
    }
    const preflight = (origin: string) =>
      fetch(`${open.url}/v1/agents/a/records`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
    const yes = await preflight('https://app.example')
    expect(yes.status).toBe(204)
    expect(yes.headers.get('access-control-allow-methods')).toBe('POST, OPTIONS')
    expect(yes.headers.get('access-control-allow-headers')).toContain('Idempotency-Key')
    const no = await preflight('https://other.example')
    expect(no.headers.get('access-control-allow-methods')).toBeNull()
  })

  it('lets configured senders of web hooks deliver to ingest routes', async () => {
    const preflight = async (path: string, origin: string) => {
      const headers = { 'webhook-request-origin': origin, 'webhook-request-rate': '120' }
      const answer = await fetch(open.url + path, { method: 'OPTIONS', headers })
      const names = ['webhook-allowed-origin', 'webhook-allowed-rate', 'allow']
      return [answer.status, await answer.text(), ...names.map((name) => answer.headers.get(name))]
    }
    const granted = [200, '', 'EventGrid.azure.net', '3000', 'POST, OPTIONS']
    for (const path of ['/v1/ingest/a', '/v1/ingest'])
      expect(await preflight(path, 'EventGrid.azure.net')).toEqual(granted)
    const refused = [204, '', null, null, 'POST, OPTIONS']
    expect(await preflight('/v1/ingest/a', 'evil.example')).toEqual(refused)
    expect(await preflight('/v1/ingest/a', '*')).toEqual(refused)
    expect(await preflight('/v1/collections/a/records', 'eventgrid.azure.net')).toEqual(refused)
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(docsRoutes)).toEqual([])
})
