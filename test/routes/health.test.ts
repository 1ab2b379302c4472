import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { healthRoutes } from '../../src/front/routes/health.js'
import { eventually } from '../support/eventually.js'
import { ask, scopedKey, unseenSuccesses } from '../support/http/answers.js'
import { backUp } from '../support/server/backup.js'
import { metricsNow } from '../support/http/metrics.js'
import { startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

it('says that it is alive and ready, without a credential', async () => {
  const alive = await ask(server, 'GET /healthz', { key: null })
  expect(alive.body).toEqual({ status: 'alive' })
  const ready = await ask(server, 'GET /readyz', { key: null })
  expect(ready.body).toEqual({ status: 'ready' })
})

it('tells its figures as Prometheus text', async () => {
  const { text, headers } = await ask(server, 'GET /metrics', { key: null })
  expect(headers.get('content-type')).toMatch(/^text\/plain/)
  expect(text).toMatch(/^# HELP /m)
  expect(text).toMatch(/^# TYPE \S+ (counter|gauge|histogram)$/m)
})

// Each request had them made again: 200 at once held the front for 438 ms.
it('makes its figures once for all that ask in the same second', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ask(server, 'GET /metrics', { key: null })),
  )
  // Each asks in a second of its own on a machine that is slow enough, but not all of them.
  expect(new Set(answers.map(({ text }) => text)).size).toBeLessThan(10)
  const infos = await Promise.all(Array.from({ length: 20 }, () => ask(server, 'GET /v1/metrics')))
  expect(new Set(infos.map(({ text }) => text)).size).toBeLessThan(10)
})

it('calls exactly the metrics that end in _total counters', async () => {
  const { text } = await ask(server, 'GET /metrics', { key: null })
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  expect(types.length).toBeGreaterThan(30)
  const misnamed = types.filter(([, name = '', type]) => name.endsWith('_total') !== (type === 'counter'))
  expect(misnamed.map(([line]) => line)).toEqual([])
})

it('tells how long commits take, and when the store has what is in the log', async () => {
  for (let n = 0; n < 3; n++)
    await ask(server, 'POST /v1/collections/timed/records', { body: { data: { n } } })
  let text = await metricsNow(() => ask(server, 'GET /metrics', { key: null }))
  const figures = (name: string) => {
    const found = text.matchAll(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'gm'))
    return Array.from(found, ([, value]) => Number(value))
  }
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
  const all = sum(figures('strandfast_append_seconds_count'))
  expect(all).toBeGreaterThanOrEqual(3)
  expect(all).toBe(sum(figures('strandfast_commits_total')))
  expect(sum(figures('strandfast_append_seconds_sum'))).toBeGreaterThan(0)
  const buckets = figures('strandfast_append_seconds_bucket')
  expect(buckets.length % 14).toBe(0)
  const [first = []] = [buckets.slice(0, 14)]
  expect(first).toEqual(first.toSorted((one, other) => one - other))
  // An idle shard brings its store up to the log, and says so.
  await eventually(async () => {
    ;({ text } = await ask(server, 'GET /metrics', { key: null }))
    return sum(figures('strandfast_memtable_age_seconds')) === 0
  })
  expect(sum(figures('strandfast_memtable_bytes'))).toBe(0)
  expect(sum(figures('strandfast_flushes_total'))).toBeGreaterThan(0)
})

it('tells how long requests of each route took, and not how long streams were open', async () => {
  const read = () => ask(server, 'GET /metrics', { key: null })
  let text = await metricsNow(read)
  const count = (route: string, part: string) => {
    const labels = `\\{[^}]*route="${route}"[^}]*\\}`
    const found = text.matchAll(new RegExp(`^strandfast_http_request_seconds_${part}${labels} (\\S+)$`, 'gm'))
    return Array.from(found, ([, value]) => Number(value))
  }
  const route = '/v1/collections/:name/records'
  const [before = 0] = count(route, 'count')
  const { body } = await ask(server, 'POST /v1/collections/timed/records', { body: { data: { n: 9 } } })
  expect(body.seq).toBeGreaterThan(0)
  expect((await ask(server, 'POST /v1/collections/timed/records', { body: {} })).status).toBe(400)
  text = await metricsNow(read)
  expect(count(route, 'count')).toEqual([before + 2])
  expect(count(route, 'sum')[0]).toBeGreaterThan(0)
  const buckets = count(route, 'bucket')
  expect(buckets.at(-1)).toBe(before + 2)
  expect(buckets).toEqual(buckets.toSorted((one, other) => one - other))
  const stream = new AbortController()
  const opened = await fetch(`${server.url}/v1/agents/timed/stream`, {
    headers: { authorization: `Bearer ${server.rootKey}` },
    signal: stream.signal,
  })
  expect(opened.status).toBe(200)
  stream.abort()
  await eventually(async () => {
    ;({ text } = await read())
    return text.includes('route="/v1/agents/:agent/stream",status=')
  })
  expect(count('/v1/agents/:agent/stream', 'count')).toEqual([])
})

it('tells administrators the same figures as JSON, all or those that are named', async () => {
  const { body, headers } = await ask(server, 'GET /v1/metrics')
  expect(headers.get('cache-control')).toBe('no-store')
  const { text } = await ask(server, 'GET /metrics', { key: null })
  const named = Array.from(text.matchAll(/^# TYPE (\S+) /gm), ([, name]) => name)
  expect(body.metrics.map(({ name }: { name: string }) => name)).toEqual(named)
  const sampleNames = new Set(Array.from(text.matchAll(/^([a-z_0-9]+)[{ ]/gm), ([, name]) => name))
  const told = body.metrics.flatMap(({ samples }: { samples: { name: string }[] }) => samples)
  expect(new Set(told.map(({ name }: { name: string }) => name))).toEqual(sampleNames)
  const names =
    'strandfast_agents,strandfast_append_seconds,no_such_metric,constructor,__proto__,strandfast_agents'
  const { body: some } = await ask(server, `GET /v1/metrics?names=${names}`)
  const [agents, appends, ...rest] = some.metrics
  expect(rest).toEqual([])
  expect(agents).toMatchObject({ name: 'strandfast_agents', type: 'gauge' })
  expect(agents.samples[0]).toMatchObject({ name: 'strandfast_agents', labels: { shard: '0' } })
  expect(appends.type).toBe('histogram')
  expect(appends.samples.at(-1)).toMatchObject({ name: 'strandfast_append_seconds_count' })
  expect(appends.samples[0].labels).toEqual({ le: '0.0001', shard: '0' })
})

it('tells its figures as JSON to nobody else, and not by too many names', async () => {
  expect((await ask(server, 'GET /v1/metrics', { key: null })).status).toBe(401)
  const reader = await scopedKey(server, ['records:read', 'agents:admin'])
  expect((await ask(server, 'GET /v1/metrics', { key: reader.key })).status).toBe(403)
  const limited = await scopedKey(server, ['admin:*'], ['a*'])
  expect((await ask(server, 'GET /v1/metrics', { key: limited.key })).status).toBe(403)
  const names = (count: number) => Array.from({ length: count }, (_, n) => `n${n}`).join(',')
  expect((await ask(server, `GET /v1/metrics?names=${names(64)}`)).body).toEqual({ metrics: [] })
  expect((await ask(server, `GET /v1/metrics?names=${names(65)}`)).status).toBe(400)
  expect((await ask(server, `GET /v1/metrics?names=${names(64)}&names=n64`)).status).toBe(400)
})

it('tells when the stores were last copied for a backup', async () => {
  const copiedAt = async () => {
    const { text } = await ask(server, 'GET /metrics', { key: null })
    return Number(/^strandfast_backup_completed_timestamp_seconds (\S+)$/m.exec(text)?.[1])
  }
  expect(await copiedAt()).toBe(0)
  const before = Date.now() / 1_000
  const target = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
  expect((await backUp(server.dataDir, target)).code).toBe(0)
  await eventually(async () => (await copiedAt()) >= before)
  rmSync(target, { recursive: true })
})

it('answers another method with 405 and Allow', async () => {
  const refused = await ask(server, 'POST /healthz', { key: null })
  expect(refused.status).toBe(405)
  expect(refused.body.code).toBe('method_not_allowed')
  expect(refused.headers.get('allow')).toBe('GET, HEAD')
})

it('takes no notice of a credential that is no good', async () => {
  expect((await ask(server, 'GET /healthz', { key: 'not-a-key' })).status).toBe(200)
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(healthRoutes)).toEqual([])
})

it('answers HEAD with the head of the answer to GET and no body', async () => {
  const authorization = `Bearer ${server.rootKey}`
  for (const path of ['/healthz', '/v1/agents/default/status', '/v1/agents/no-such-agent/status']) {
    const got = await fetch(server.url + path, { headers: { authorization } })
    const head = await fetch(server.url + path, { method: 'HEAD', headers: { authorization } })
    const bytes = (await got.arrayBuffer()).byteLength
    expect([path, head.status, head.headers.get('content-type')]).toEqual([
      path,
      got.status,
      got.headers.get('content-type'),
    ])
    // The id of the request is part of a problem, and not of one length.
    if (got.ok) expect(head.headers.get('content-length')).toBe(String(bytes))
    expect((await head.arrayBuffer()).byteLength).toBe(0)
  }
})
