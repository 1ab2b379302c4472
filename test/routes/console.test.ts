import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { assert } from '../../src/base/assert.js'
import { createLogger } from '../../src/base/log.js'
import { consoleRoutes } from '../../src/front/routes/console.js'
import { readPage } from '../../src/server/pages.js'
import { checkedCall, recordSuccess, untestedSuccesses } from '../support/http/answers.js'
import { programWith, writeConsole, type ConsoleProgram } from '../support/server/console-program.js'
import { startServer, type TestServer } from '../support/server/server.js'

const script = 'main-4fJx2Qab.js'
const files = {
  'index.html': '<!doctype html><script type="module" src="console/main-4fJx2Qab.js"></script>',
  [script]: `// ${'é'.repeat(50_000)}\n`,
  'look-Zk3_x-9q.css': 'body { color: green }',
  'mark-00112233.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
}

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'; trusted-types console-worker"

let built: ConsoleProgram
let server: TestServer

beforeAll(async () => {
  built = programWith(files)
  server = await startServer({ program: built.program })
})
afterAll(async () => {
  await server.stop()
  built.remove()
})

/**
 * An unchanged answer: `fetch` would normalize the path and decode the body. Headers are pairs of names and
 * values.
 */
async function send(method: string, path: string, headers: readonly (readonly [string, string])[]) {
  const { hostname: host, port } = new URL(server.url)
  const sent = request({ host, port, method, path, headers: [['host', host], ...headers].flat() })
  const [answer]: IncomingMessage[] = await once(sent.end(), 'response')
  assert(answer !== undefined, 'a response is a message')
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part)
  const fields = Object.entries(answer.headers).map(([name, value]): [string, string] => [
    name,
    String(value),
  ])
  return { status: answer.statusCode, headers: new Headers(fields), body: Buffer.concat(parts) }
}

const get = (path: string, ...headers: [string, string][]) => send('GET', path, headers)

describe('the console', () => {
  it('consists of the page and its files, each with its type, without a credential and with the policy', async () => {
    const types = {
      html: 'text/html; charset=utf-8',
      js: 'text/javascript; charset=utf-8',
      css: 'text/css; charset=utf-8',
      svg: 'image/svg+xml',
    }
    for (const [name, text] of Object.entries(files)) {
      const path = name === 'index.html' ? '/console' : `/console/${name}`
      const answer = await get(path)
      expect([path, answer.status, answer.body.toString()]).toEqual([path, 200, text])
      const [, ending = ''] = /\.(\w+)$/.exec(name) ?? []
      const headers = Object.fromEntries(answer.headers)
      expect(headers).toMatchObject({
        'content-type': Reflect.get(types, ending),
        'content-security-policy': policy,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': path === '/console' ? 'no-cache' : 'public, max-age=31536000, immutable',
        vary: 'Accept-Encoding, Origin',
      })
      expect(headers['content-encoding']).toBeUndefined()
    }
  })

  it('answers each route as documented, and redirects / with a relative path', async () => {
    const leads = await fetch(`${server.url}/?utm=1`, { redirect: 'manual' })
    recordSuccess('GET /', leads)
    expect([leads.status, leads.headers.get('location')]).toEqual([302, 'console'])
    const etag = (answer: { headers: Headers }) => answer.headers.get('etag') ?? ''
    for (const path of ['/console', `/console/${script}`]) {
      const whole = await checkedCall(server, `GET ${path}`, { key: null })
      const headers = { 'if-none-match': etag(whole) }
      expect((await checkedCall(server, `GET ${path}`, { key: null, headers })).status).toBe(304)
    }
    const { status } = await checkedCall(server, 'GET /console/none-00000000.js', { key: null })
    expect(status).toBe(404)
  })

  it('is sent in the requested coding, each with its own tag', async () => {
    const path = `/console/${script}`
    const decoded = async (accept: string) => {
      const { status, headers, body } = await get(path, ['Accept-Encoding', accept])
      const coding = headers.get('content-encoding')
      const plain = coding === 'br' ? brotliDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body
      expect([accept, status, plain.toString()]).toEqual([accept, 200, files[script]])
      return { coding, tag: headers.get('etag') }
    }
    const br = await decoded('gzip, deflate, br, zstd')
    const gzip = await decoded('gzip')
    const plain = await decoded('identity')
    expect([br.coding, gzip.coding, plain.coding]).toEqual(['br', 'gzip', null])
    expect(new Set([br.tag, gzip.tag, plain.tag]).size).toBe(3)
    expect(await decoded('br;q=0.1, gzip;q=0.9')).toEqual(gzip)
    expect(await decoded('br;q=0, *')).toEqual(gzip)
  })

  it('is sent uncompressed if Accept-Encoding refuses everything or is absent', async () => {
    const absurd = [
      '*;q=0',
      'identity;q=0',
      'br;q=0,gzip;q=0,identity;q=0',
      ';q=1',
      'br;q=9',
      'br;q=-1',
      ','.repeat(4_000),
      `${'x'.repeat(8_000)};q=1`,
    ]
    for (const accept of absurd) {
      const { status, headers, body } = await get('/console', ['Accept-Encoding', accept])
      expect([accept, status, headers.get('content-encoding')]).toEqual([accept, 200, null])
      expect(body.toString()).toBe(files['index.html'])
    }
  })

  it('answers 304 for the current tag, also in a list and weak, and for no other', async () => {
    const tag = (await get('/console')).headers.get('etag') ?? ''
    expect(tag).toMatch(/^"[\w-]{22}"$/)
    const matching = [tag, `W/${tag}`, '*', `"a", ${tag},"b"`, `"a",,${tag}`, `${'"x",'.repeat(1_000)}${tag}`]
    for (const list of matching) {
      const { status, headers, body } = await get('/console', ['If-None-Match', list])
      expect([list.slice(-60), status, body.length]).toEqual([list.slice(-60), 304, 0])
      expect(headers.get('etag')).toBe(tag)
      expect([headers.get('cache-control'), headers.get('vary')]).toEqual([
        'no-cache',
        'Accept-Encoding, Origin',
      ])
      // Its length would be that of the omitted body (RFC 9110, 8.6).
      expect(headers.get('content-length')).toBeNull()
      expect(headers.get('content-encoding')).toBeNull()
    }
    const twice = await get('/console', ['If-None-Match', '"a"'], ['If-None-Match', tag])
    expect(twice.status).toBe(304)
    for (const list of ['"a"', tag.slice(1, -1), tag.toUpperCase().slice(0, -3), `"${tag}"`, 'W/*'])
      expect([list, (await get('/console', ['If-None-Match', list])).status]).toEqual([list, 200])
    // The tag of another coding identifies other bytes.
    expect((await get('/console', ['Accept-Encoding', 'br'], ['If-None-Match', tag])).status).toBe(200)
  })

  it('answers HEAD like GET without the body, and ignores Range', async () => {
    for (const path of ['/', '/console', `/console/${script}`]) {
      const [head, got] = [
        await send('HEAD', path, [['Accept-Encoding', 'br']]),
        await get(path, ['Accept-Encoding', 'br']),
      ]
      const shown = (answer: typeof got) => [
        answer.status,
        Object.fromEntries(
          [...answer.headers].filter(([name]) => !/^(?:x-request-id|date|keep-alive)$/.test(name)),
        ),
      ]
      expect(shown(head)).toEqual(shown(got))
      expect(head.body.length).toBe(0)
    }
    const ranged = await get(`/console/${script}`, ['Range', 'bytes=0-9'], ['If-Range', '"x"'])
    expect([ranged.status, ranged.body.toString()]).toEqual([200, files[script]])
  })

  it('answers 404 at any other path', async () => {
    const wrong = [
      '/console/',
      '/console/index.html',
      '/console/index.html.br',
      '/console/index.html.gz',
      `/console/${script}.br`,
      `/console/${script}/`,
      `/console//${script}`,
      `//console/${script}`,
      `/console/x/../${script}`,
      '/console/../package.json',
      '/console/..%2fstrandfast.js',
      '/console/%2e%2e%2f%2e%2e%2fpackage.json',
      '/console/..%5c..%5cpackage.json',
      '/console/%00',
      `/console/${script}%00`,
      `/console/${script.toUpperCase()}`,
      '/console/__proto__',
      '/console/constructor',
      `/console/${'a'.repeat(12_000)}`,
      `/console/${'../'.repeat(3_000)}etc/passwd`,
    ]
    for (const path of wrong) {
      const { status, headers, body } = await get(path)
      expect([path, status]).toEqual([path, 404])
      expect(headers.get('content-type')).toBe('application/problem+json')
      expect(JSON.parse(body.toString()).code).toBe('not_found')
    }
    expect((await get('/console/%ff')).status).toBe(400)
    const absent = await get('/console/none-00000000.js')
    expect([
      absent.headers.get('content-security-policy'),
      absent.headers.get('x-content-type-options'),
    ]).toEqual([policy, 'nosniff'])
    expect((await checkedCall(server, 'POST /console', { key: null })).body.code).toBe('method_not_allowed')
  })

  it('counts for the rate limit', async () => {
    const env = { SERVICE_RATE_LIMIT_RPS: '1', SERVICE_RATE_LIMIT_BURST: '2' }
    const slow = await startServer({ program: built.program, env })
    const pending = Array.from({ length: 20 }, () =>
      checkedCall(slow, `GET /console/${script}`, { key: null }),
    )
    const statuses = (await Promise.all(pending)).map(({ status }) => status)
    await slow.stop()
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })
})

describe('a server without a console', () => {
  it('answers 404 at all its paths with SERVICE_CONSOLE=false or a build without a console, and logs the latter once', async () => {
    const bare = programWith({})
    const env = { SERVICE_LOG_LEVEL: 'info' }
    const servers = [
      await startServer({ program: built.program, env: { ...env, SERVICE_CONSOLE: 'false' } }),
      await startServer({ program: bare.program, env }),
    ]
    for (const one of servers) {
      for (const route of ['GET /', 'GET /console', `GET /console/${script}`, 'POST /console']) {
        const refused = await fetch(one.url + route.split(' ')[1], { method: route.split(' ')[0] ?? '' })
        expect([route, refused.status]).toEqual([route, 404])
      }
      const { body } = await checkedCall(one, 'GET /openapi.json', { key: null })
      expect(Object.keys(body.paths).filter((path) => path.startsWith('/console'))).toEqual([])
      await one.stop()
    }
    const send = servers.map(
      (one) => one.stderr().match(/this build does not contain \/console/g)?.length ?? 0,
    )
    expect(send).toEqual([0, 1])
    bare.remove()
  })

  it.each([
    [
      'a file that is not brotli',
      { 'index.html': 'x' },
      (folder: string) => writeFileSync(join(folder, `${script}.br`), 'no brotli'),
    ],
    [
      'a file that is damaged in one of its codings',
      { 'index.html': 'x' },
      (folder: string) => writeFileSync(join(folder, 'index.html.gz'), gzipSync('y')),
    ],
    ['a name without a hash', { 'index.html': 'x', 'main.js': 'x' }, () => {}],
    ['a kind of file that the page has not', { 'index.html': 'x', 'data-00112233.wasm': 'x' }, () => {}],
    [
      'a file that inflates without end',
      { 'index.html': 'x', 'huge-00112233.js': 'x'.repeat(5_000_000) },
      () => {},
    ],
    [
      'more files than a page needs',
      {
        'index.html': 'x',
        ...Object.fromEntries(
          Array.from({ length: 200 }, (_none, at) => [`part-${10_000_000 + at}.js`, 'x']),
        ),
      },
      () => {},
    ],
    ['no page', { [script]: 'x' }, () => {}],
  ])('is the result of %s', async (_what, parts, damage) => {
    const folder = mkdtempSync(join(tmpdir(), 'strandfast-console-'))
    writeConsole(folder, parts)
    damage(folder)
    expect(await readPage('console', { log: createLogger('silent', 'test'), folder })).toBeUndefined()
    rmSync(folder, { recursive: true })
  })
})

it('the server answered every documented success', () => {
  expect(untestedSuccesses(consoleRoutes)).toEqual([])
})
