import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { metricsNow } from '../support/http/metrics.js'
import { call, type TestServer } from '../support/server/server.js'

const CONNECTIONS = 12
const user = { email: 'ada@example.com', password: 'correct horse battery' }

let server: TestServer
let agent: Agent

beforeEach(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  // Without descriptors the server accepts no new connections, so the test uses existing ones.
  agent = new Agent({ keepAlive: true, maxFreeSockets: CONNECTIONS })
})

afterEach(async () => {
  agent.destroy()
  await server.stop()
})

interface Answered {
  status: number
  text: string
  retryAfter: string | undefined
}

/** Sends a request over an existing connection. */
function send(route: string, body?: object): Promise<Answered> {
  const [method, path] = route.split(' ')
  const headers = {
    authorization: `Bearer ${server.rootKey}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  return new Promise((resolve, reject) => {
    const sent = request(server.url + path, { method, agent, headers }, async (response) => {
      let text = ''
      for await (const part of response) text += part
      resolve({ status: response.statusCode ?? 0, text, retryAfter: response.headers['retry-after'] })
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** Limits the open files of the process; without `files`, resets the limit. */
function limitFiles(files?: number): void {
  const pid = String(server.process.pid)
  const hard = execFileSync('prlimit', ['--pid', pid, '--nofile', '--noheadings', '--raw', '-o', 'HARD'])
  execFileSync('prlimit', ['--pid', pid, `--nofile=${files ?? hard.toString().trim()}:`])
}

async function metric(name: string, pool: string): Promise<number> {
  const text = await metricsNow(() => send('GET /metrics'))
  return Number(new RegExp(`^${name}{pool="${pool}"} (\\S+)$`, 'm').exec(text)?.[1])
}

it.runIf(process.platform === 'linux')(
  '/readyz reports missing file descriptors, and requests wait until there are descriptors again',
  async () => {
    await call(server, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
    const record = await call(server, 'POST /v1/collections/notes/records', { body: { data: { n: 2 } } })
    await Promise.all(Array.from({ length: CONNECTIONS }, () => send('GET /healthz')))

    limitFiles(readdirSync(`/proc/${server.process.pid}/fd`).length)
    const waiting = [
      send('GET /v1/strand/export?agent=notes'),
      send('GET /v1/strand/checkpoint?agent=notes'),
      send(`GET /v1/strand/proof?agent=notes&hash=${record.body.record_id}`),
      send('POST /v1/auth/register', user),
    ]
    await eventually(async () => (await metric('strandfast_pool_failed_starts_total', 'readers')) > 2)
    await eventually(async () => (await metric('strandfast_pool_failed_starts_total', 'passwords')) > 0)
    const readiness = await send('GET /readyz')
    expect([readiness.status, readiness.text]).toEqual([
      503,
      expect.stringContaining('No thread of the pool'),
    ])
    expect(await metric('strandfast_pool_serving', 'readers')).toBe(0)

    limitFiles()
    const answers = await Promise.all(waiting)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 201])
    await eventually(async () => (await send('GET /readyz')).status === 200)
    expect(await metric('strandfast_pool_serving', 'readers')).toBe(1)
    expect(server.stderr()).toMatch(/"pool":"readers".*"msg":"no thread of a pool can be started/)
    expect(server.stderr()).toMatch(/"pool":"passwords".*"msg":"threads of a pool can be started again/)

    const login = await call(server, 'POST /v1/auth/login', { body: user, key: null })
    expect(login.status).toBe(200)
    const [exported] = answers
    const taken = await call(server, 'POST /v1/strand/import', {
      raw: exported?.text ?? '',
      headers: { 'content-type': 'application/x-ndjson' },
    })
    expect([taken.status, taken.text]).toEqual([200, expect.stringContaining('"skipped":3')])
  },
)

it.runIf(process.platform === 'linux')(
  'a store that a reader cannot open without descriptors leads to 503 with Retry-After, not to 500',
  async () => {
    const agents = Array.from({ length: 8 }, (_none, n) => `away-${n}`)
    for (const name of agents)
      await call(server, `POST /v1/collections/${name}/records`, { body: { data: { n: 1 } } })
    // Both threads keep the store of one shard open.
    const firsts = Array.from({ length: 8 }, () => send(`GET /v1/strand/export?agent=${agents[0]}`))
    expect((await Promise.all(firsts)).map(({ status }) => status)).toEqual(Array(8).fill(200))
    await Promise.all(Array.from({ length: CONNECTIONS }, () => send('GET /healthz')))
    limitFiles(readdirSync(`/proc/${server.process.pid}/fd`).length)
    const refused: string[] = []
    for (const name of agents.flatMap((agent) => [`export?agent=${agent}`, `checkpoint?agent=${agent}`])) {
      const { status, text, retryAfter } = await send(`GET /v1/strand/${name}`)
      expect([200, 503], text).toContain(status)
      if (status !== 503) continue
      expect([JSON.parse(text).code, retryAfter]).toEqual(['unavailable', '1'])
      refused.push(name)
    }
    expect(refused.length).toBeGreaterThan(0)
    limitFiles()
    for (const name of refused) {
      await eventually(async () => (await send(`GET /v1/strand/${name}`)).status === 200)
    }
  },
)
