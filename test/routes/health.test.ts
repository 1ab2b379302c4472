import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { healthRoutes } from '../../src/front/routes/health.js'
import { eventually } from '../support/eventually.js'
import { checkedCall, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { backUp } from '../support/server/backup.js'
import { metricsNow } from '../support/http/metrics.js'
import { startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

it('reports that it is alive and ready, without a credential', async () => {
  const alive = await checkedCall(server, 'GET /healthz', { key: null })
  expect(alive.body).toEqual({ status: 'alive' })
  const ready = await checkedCall(server, 'GET /readyz', { key: null })
  expect(ready.body).toEqual({ status: 'ready' })
})

it('returns its metrics as Prometheus text', async () => {
  const { text, headers } = await checkedCall(server, 'GET /metrics', { key: null })
  expect(headers.get('content-type')).toMatch(/^text\/plain/)
  expect(text).toMatch(/^# HELP /m)
  expect(text).toMatch(/^# TYPE \S+ (counter|gauge|histogram)$/m)
})

// Regression: each request computed them again; 200 concurrent requests blocked the front for 438 ms.
it('computes its metrics once for all requests in the same second', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => checkedCall(server, 'GET /metrics', { key: null })),
  )
  // On a slow machine, each request may come in a different second, but not all of them.
  expect(new Set(answers.map(({ text }) => text)).size).toBeLessThan(10)
  const infos = await Promise.all(Array.from({ length: 20 }, () => checkedCall(server, 'GET /v1/metrics')))
  expect(new Set(infos.map(({ text }) => text)).size).toBeLessThan(10)
})

it('declares exactly the metrics that end in _total as counters', async () => {
  const { text } = await checkedCall(server, 'GET /metrics', { key: null })
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  expect(types.length).toBeGreaterThan(30)
  const misnamed = types.filter(([, name = '', type]) => name.endsWith('_total') !== (type === 'counter'))
  expect(misnamed.map(([line]) => line)).toEqual([])
})

it('reports how long commits take, and when the store has applied the log', async () => {
  for (let n = 0; n < 3; n++)
    await checkedCall(server, 'POST /v1/collections/timed/records', { body: { data: { n } } })
  let text = await metricsNow(() => checkedCall(server, 'GET /metrics', { key: null }))
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
  // An idle shard flushes its log to the store, and reports it.
  await eventually(async () => {
    ;({ text } = await checkedCall(server, 'GET /metrics', { key: null }))
    return sum(figures('strandfast_memtable_age_seconds')) === 0
  })
  expect(sum(figures('strandfast_memtable_bytes'))).toBe(0)
  expect(sum(figures('strandfast_flushes_total'))).toBeGreaterThan(0)
})

it('reports how long requests of each route took, but not how long streams were open', async () => {
  const read = () => checkedCall(server, 'GET /metrics', { key: null })
  let text = await metricsNow(read)
  const count = (route: string, part: string) => {
    const labels = `\\{[^}]*route="${route}"[^}]*\\}`
    const found = text.matchAll(new RegExp(`^strandfast_http_request_seconds_${part}${labels} (\\S+)$`, 'gm'))
    return Array.from(found, ([, value]) => Number(value))
  }
  const route = '/v1/collections/:name/records'
  const [before = 0] = count(route, 'count')
  const { body } = await checkedCall(server, 'POST /v1/collections/timed/records', {
    body: { data: { n: 9 } },
  })
  expect(body.seq).toBeGreaterThan(0)
  expect((await checkedCall(server, 'POST /v1/collections/timed/records', { body: {} })).status).toBe(400)
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

it('returns all or the named metrics as JSON to administrators', async () => {
  const { body, headers } = await checkedCall(server, 'GET /v1/metrics')
  expect(headers.get('cache-control')).toBe('no-store')
  const { text } = await checkedCall(server, 'GET /metrics', { key: null })
  const named = Array.from(text.matchAll(/^# TYPE (\S+) /gm), ([, name]) => name)
  expect(body.metrics.map(({ name }: { name: string }) => name)).toEqual(named)
  const sampleNames = new Set(Array.from(text.matchAll(/^([a-z_0-9]+)[{ ]/gm), ([, name]) => name))
  const allSamples = body.metrics.flatMap(({ samples }: { samples: { name: string }[] }) => samples)
  expect(new Set(allSamples.map(({ name }: { name: string }) => name))).toEqual(sampleNames)
  const names =
    'strandfast_agents,strandfast_append_seconds,no_such_metric,constructor,__proto__,strandfast_agents'
  const { body: some } = await checkedCall(server, `GET /v1/metrics?names=${names}`)
  const [agents, appends, ...rest] = some.metrics
  expect(rest).toEqual([])
  expect(agents).toMatchObject({ name: 'strandfast_agents', type: 'gauge' })
  expect(agents.samples[0]).toMatchObject({ name: 'strandfast_agents', labels: { shard: '0' } })
  expect(appends.type).toBe('histogram')
  expect(appends.samples.at(-1)).toMatchObject({ name: 'strandfast_append_seconds_count' })
  expect(appends.samples[0].labels).toEqual({ le: '0.0001', shard: '0' })
})

it('returns metrics as JSON only to administrators, and refuses too many names', async () => {
  expect((await checkedCall(server, 'GET /v1/metrics', { key: null })).status).toBe(401)
  const reader = await scopedKey(server, ['records:read', 'agents:admin'])
  expect((await checkedCall(server, 'GET /v1/metrics', { key: reader.key })).status).toBe(403)
  const limited = await scopedKey(server, ['admin:*'], ['a*'])
  expect((await checkedCall(server, 'GET /v1/metrics', { key: limited.key })).status).toBe(403)
  const names = (count: number) => Array.from({ length: count }, (_, n) => `n${n}`).join(',')
  expect((await checkedCall(server, `GET /v1/metrics?names=${names(64)}`)).body).toEqual({ metrics: [] })
  expect((await checkedCall(server, `GET /v1/metrics?names=${names(65)}`)).status).toBe(400)
  expect((await checkedCall(server, `GET /v1/metrics?names=${names(64)}&names=n64`)).status).toBe(400)
})

it('reports when the stores were last copied for a backup', async () => {
  const copiedAt = async () => {
    const { text } = await checkedCall(server, 'GET /metrics', { key: null })
    return Number(/^strandfast_backup_completed_timestamp_seconds (\S+)$/m.exec(text)?.[1])
  }
  expect(await copiedAt()).toBe(0)
  const before = Date.now() / 1_000
  const target = mkdtempSync(join(tmpdir(), 'strandfast-backup-'))
  expect((await backUp(server.dataDir, target)).code).toBe(0)
  await eventually(async () => (await copiedAt()) >= before)
  rmSync(target, { recursive: true })
})

it('answers 405 with Allow for another method', async () => {
  const refused = await checkedCall(server, 'POST /healthz', { key: null })
  expect(refused.status).toBe(405)
  expect(refused.body.code).toBe('method_not_allowed')
  expect(refused.headers.get('allow')).toBe('GET, HEAD')
})

it('ignores an invalid credential', async () => {
  expect((await checkedCall(server, 'GET /healthz', { key: 'not-a-key' })).status).toBe(200)
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(healthRoutes)).toEqual([])
})

it('answers HEAD with the head of GET and no body', async () => {
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
    // The request id is part of a problem, and varies in length.
    if (got.ok) expect(head.headers.get('content-length')).toBe(String(bytes))
    expect((await head.arrayBuffer()).byteLength).toBe(0)
  }
})
