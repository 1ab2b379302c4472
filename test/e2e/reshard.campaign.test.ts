import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { register, type Account } from '../support/auth/accounts.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { isCaughtUp, openStream, type TestEvent } from '../support/http/events.js'
import { addEdge, removeEdge } from '../support/shard/graph.js'
import { newOrganism, registerIn } from '../support/auth/organisms.js'
import { everyRead, runReshard } from '../support/server/reshard.js'
import type { TestAnswer, TestCall, TestServer } from '../support/server/server.js'

const ndjson = { 'content-type': 'application/x-ndjson' }
const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)
const sensors = upTo(12).map((n) => `sensor-${n}`)

let server: TestServer
let dataDir: string
let decider: string
let root: Account
let member: Account
let loggedOut: Account
/** Moments between the first writes. */
const moments: string[] = []
/**
 * Cursors of global streams of servers with any number of shards, and the records delivered before each
 * cursor.
 */
const cursors: { id: string; delivered: Set<string> }[] = []

const env = { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '604800' }

/**
 * Writes that are repeated after each move with the same idempotency keys, and must get the first answers.
 */
const keyed: [route: string, options: TestCall][] = [
  ['POST /v1/agents/sensor-1/records', { body: { data: { keyed: 1 } } }],
  [
    'POST /v1/agents/sensor-2/records/batch',
    { body: { records: [{ data: { keyed: 2 } }, { data: { keyed: 3 } }] } },
  ],
  ['POST /v1/collections/emerged/records', { body: { data: { keyed: 4 } } }],
  ['POST /v1/ingest/sensor-3', { raw: '{"keyed":5}\n{"keyed":6}\nno JSON\n', headers: ndjson }],
  ['POST /v1/ingest', { raw: manyLines(), headers: ndjson }],
  ['POST /v1/ingest?on_error=reject_all', { raw: manyLines(20), headers: ndjson }],
  ['POST /v1/agents', { body: { name: 'seeded', zone: 'free', seed_hex: 'ab'.repeat(32) } }],
  ['POST /v1/admin/api-keys', { body: { name: 'kept', scopes: ['records:read'] } }],
  ['POST /v1/organisms', { body: { name: 'Named by the server', agents: [{ name: 'a', zone: 'free' }] } }],
  ['POST /v1/graph/edges', { body: { src: 'sensor-4', dst: 'sensor-5', edge_type: 'keyed', weight: 2 } }],
]

/** Lines for all sensors, by default more than one chunk, and some invalid ones. */
function manyLines(count = 3_000): string {
  const good = upTo(count).map((n) =>
    JSON.stringify({ agent: sensors[n % sensors.length], data: { many: n, pad: 'x'.repeat(60) } }),
  )
  if (count < 1_000) return `${good.join('\n')}\n`
  return `${good.join('\n')}\n{"agent":"sensor-1","data":{"a":1,"a":2}}\n{"agent":"sensor-2"}\nno JSON\n`
}

async function sendKeyed(): Promise<TestAnswer[]> {
  const answers: TestAnswer[] = []
  for (const [n, [route, options]] of keyed.entries()) {
    const headers = { ...options.headers, 'idempotency-key': `repeated-${n}` }
    answers.push(await checkedCall(server, route, { ...options, headers }))
  }
  return answers
}

async function write(agent: string, data: object): Promise<string> {
  const { status, body } = await checkedCall(server, `POST /v1/agents/${agent}/records`, { body: { data } })
  expect(status).toBe(201)
  return body.id
}

const nameOf = ({ data }: TestEvent) => `${data.agent} ${data.seq}`
const records = (events: readonly TestEvent[]) => events.filter(({ event }) => event === 'record')

/** All events of a global stream until it has caught up. */
async function replayed(headers: Record<string, string>): Promise<TestEvent[]> {
  const stream = await openStream(server, '/v1/stream?since=0', { headers })
  await stream.until(isCaughtUp)
  stream.close()
  return stream.events
}

/** Stores cursors from the middle and the end of a global stream. */
async function storeCursors(headers: Record<string, string> = {}, before = new Set<string>()): Promise<void> {
  const events = await replayed(headers)
  const shown = records(events)
  for (const at of [Math.floor(shown.length / 3), shown.length - 1]) {
    const { id = '' } = shown[at] ?? {}
    if (id !== '')
      cursors.push({ id, delivered: new Set([...before, ...shown.slice(0, at + 1).map(nameOf)]) })
  }
}

beforeAll(async () => {
  server = await startAuthServer({ env: { ...env, SERVICE_SHARDS: '1' } })
  dataDir = server.dataDir
  ;({ key: decider } = await scopedKey(server, ['proposals:decide', 'admin:*']))
  for (const sensor of sensors) await newAgent(server, sensor)
  await newAgent(server, 'governed', 'governed')
  await newAgent(server, 'core', 'immutable_core')
  await newOrganism(server, 'acme', { agents: ['notes', 'ledger'] })
  root = await register(server, 'ada@example.com')
  loggedOut = await register(server, 'logged-out@example.com')
  member = await registerIn(server, 'acme', 'bob@example.com')
  const hashes = new Map<string, string[]>()
  for (const sensor of sensors) {
    const own = []
    for (const n of upTo(6))
      own.push(await write(sensor, { sensor, n, large: 'y'.repeat(n === 3 ? 20_000 : 10) }))
    hashes.set(sensor, own)
  }
  for (const [n, sensor] of sensors.entries()) {
    await addEdge(server, [sensor, sensors[(n + 5) % 12] ?? '', 'likes', n])
    await addEdge(server, [sensor, 'governed', 'knows'])
  }
  moments.push((await checkedCall(server, 'GET /v1/agents/sensor-11/head')).body.timestamp_hlc)
  for (const sensor of sensors.slice(0, 6)) {
    const [first = '', second = '', third = ''] = hashes.get(sensor) ?? []
    for (const hash of [first, second]) {
      expect((await checkedCall(server, `DELETE /v1/agents/${sensor}/records/${hash}`)).status).toBe(200)
    }
    expect((await checkedCall(server, `POST /v1/agents/${sensor}/records/${second}/restore`)).status).toBe(
      200,
    )
    expect((await checkedCall(server, `POST /v1/agents/${sensor}/records/${third}/erase`)).status).toBe(200)
    await removeEdge(server, [sensor, 'governed', 'knows'])
    await addEdge(server, [sensor, 'governed', 'knows', 7])
  }
  for (const sensor of ['sensor-0', 'sensor-7']) {
    expect((await checkedCall(server, `POST /v1/agents/${sensor}/rotate-key`)).status).toBe(200)
    const batch = { records: upTo(5).map((n) => ({ data: { sealed: n } })) }
    const route = `POST /v1/agents/${sensor}/records/batch?signing=group`
    expect((await checkedCall(server, route, { body: batch })).status).toBe(201)
  }
  const policies = [{ actions: ['read'], conditions: [{ field: 'n', op: 'eq', value: 1 }] }]
  expect((await checkedCall(server, 'PUT /v1/agents/sensor-8/policies', { body: { policies } })).status).toBe(
    200,
  )
  expect(
    (await checkedCall(server, 'PUT /v1/agents/sensor-9/zone', { body: { zone: 'protected' } })).status,
  ).toBe(200)
  for (const agent of ['governed', 'governed', 'sensor-9', 'sensor-9']) {
    const { status } = await checkedCall(
      server,
      `DELETE /v1/agents/${agent}/records/${await write(agent, { waits: 1 })}`,
    )
    expect(status).toBe(202)
  }
  const signedOut = { key: loggedOut.token, body: { refresh_token: loggedOut.refreshToken } }
  expect((await checkedCall(server, 'POST /v1/auth/logout', signedOut)).status).toBe(200)
  moments.push((await checkedCall(server, 'GET /v1/agents/sensor-9/head')).body.timestamp_hlc)
}, 240_000)

afterAll(() => server?.stop())

describe('a directory that is moved from 1 to 2, 3, and back to 1 shards', () => {
  let answers: TestAnswer[]

  it('answers writes with idempotency keys, and returns cursors, before the moves', async () => {
    answers = await sendKeyed()
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 200, 200, 200, 201, 201, 201, 201])
    expect(answers[4]?.body).toMatchObject({ accepted: 3_000, rejected: 3 })
    await storeCursors()
    await write('sensor-1', { after: 'the cursors' })
  })

  describe.each([2, 3, 1])('after a move to %i shards', (shards) => {
    it('returns the same answer to every read', { timeout: 120_000 }, async () => {
      const before = await everyRead(server, moments)
      expect(before.size).toBeGreaterThan(500)
      await server.halt(shards === 3 ? 'SIGKILL' : 'SIGTERM')
      const moved = runReshard(dataDir, shards)
      expect([moved.status, moved.stdout], moved.stderr).toEqual([
        0,
        expect.stringMatching(new RegExp(`^Moved \\d+ agents with \\d+ records to ${shards} shards`)),
      ])
      expect(readdirSync(dataDir).filter((name) => name.includes('shard'))).toEqual(
        upTo(shards).map((shard) => `shard-${shard}`),
      )
      server = await startAuthServer({ dataDir, env })
      const after = await everyRead(server, moments)
      expect([...after.keys()]).toEqual([...before.keys()])
      for (const [route, text] of after) expect(text, route).toBe(before.get(route))
    })

    it('returns the first answers for repeated idempotency keys, and writes nothing', async () => {
      const before = await heads()
      const again = await sendKeyed()
      // Parsed, because the order of the agents in a summary depends on the order in which shards answer.
      for (const [n, { status, body }] of again.entries()) {
        expect([keyed[n]?.[0], status, body]).toEqual([keyed[n]?.[0], answers[n]?.status, answers[n]?.body])
      }
      expect(again.map(({ headers }) => headers.get('idempotency-replayed'))).toEqual(again.map(() => 'true'))
      const other = { body: { data: { keyed: 'other' } }, headers: { 'idempotency-key': 'repeated-0' } }
      const { status, body } = await checkedCall(server, 'POST /v1/agents/sensor-1/records', other)
      expect([status, body.code]).toEqual([422, 'idempotency_key_reused'])
      expect(await heads()).toEqual(before)
    })

    it('continues global streams from every earlier cursor, without gaps or duplicates', async () => {
      await write('sensor-2', { shards })
      const all = records(await replayed({})).map(nameOf)
      expect(new Set(all).size).toBe(all.length)
      for (const { id, delivered: before } of cursors.slice()) {
        const since = { 'last-event-id': id }
        const rest = records(await replayed(since)).map(nameOf)
        expect(rest.toSorted(), id).toEqual(all.filter((name) => !before.has(name)).toSorted())
        // Also from the middle of these events.
        if (cursors.length < 12) await storeCursors(since, before)
      }
      await storeCursors()
    })

    it('accepts tokens and sign-ins of users, and refuses a logged-out user', async () => {
      for (const [base, account] of [
        ['/v1/auth', root],
        ['/v1/organisms/acme/auth', member],
      ] as const) {
        expect((await checkedCall(server, `GET ${base}/me`, { key: account.token })).status).toBe(200)
        const body = { refresh_token: account.refreshToken }
        const renewed = await checkedCall(server, `POST ${base}/refresh`, { key: null, body })
        expect(renewed.status, renewed.text).toBe(200)
        account.refreshToken = renewed.body.refresh_token
        account.token = renewed.body.token
        const { email, password } = account
        const again = await checkedCall(server, `POST ${base}/login`, {
          key: null,
          body: { email, password },
        })
        expect(again.status).toBe(200)
      }
      expect((await checkedCall(server, 'GET /v1/auth/me', { key: loggedOut.token })).status).toBe(401)
    })

    it('applies open proposals after a vote', async () => {
      const { body } = await checkedCall(server, 'GET /v1/proposals?state=proposed')
      const [first] = body.proposals
      const route = `POST /v1/proposals/${encodeURIComponent(first.proposal_id)}/approve`
      const approved = await checkedCall(server, route, { key: decider })
      expect([approved.status, approved.body.state], approved.text).toEqual([200, 'applied'])
      const record = await checkedCall(server, `GET /v1/agents/${first.agent}/records/${first.target}`)
      expect(record.body.deleted).toBe(true)
    })

    it('accepts writes to existing and new agents, and refuses the key of another agent', async () => {
      for (const sensor of sensors) await write(sensor, { shards })
      for (const n of upTo(8)) await newAgent(server, `made-${shards}-${n}`)
      await addEdge(server, ['sensor-1', `made-${shards}-1`, 'likes', shards])
      await removeEdge(server, ['sensor-2', 'sensor-7'])
      await addEdge(server, ['sensor-2', 'sensor-7', 'likes', shards])
      const seed = { name: 'thief', zone: 'free', seed_hex: 'ab'.repeat(32) }
      const taken = await checkedCall(server, 'POST /v1/agents', { body: seed })
      expect([taken.status, taken.body.code]).toEqual([409, 'key_in_use'])
      const organism = await checkedCall(server, 'POST /v1/organisms', {
        body: { organism_id: 'acme', name: 'x' },
      })
      expect(organism.status).toBe(409)
    })
  })

  it('has strands that verify', async () => {
    for (const agent of [...sensors, 'default', 'governed', 'seeded', 'emerged', 'acme::auth']) {
      const { body } = await checkedCall(server, `GET /v1/agents/${agent}/status`)
      const { text } = await checkedCall(server, `GET /v1/strand/export?agent=${agent}`)
      const verified = await verifyExport(text.trimEnd().split('\n'), { publicKey: body.public_key })
      expect(verified, agent).toMatchObject({ ok: true, chainHead: body.chain_head })
    }
  })
})

/** The head of every strand. */
async function heads(): Promise<Record<string, string>> {
  const { body } = await checkedCall(server, 'GET /v1/agents?limit=1000')
  const found: Record<string, string> = {}
  for (const agent of body.agents) {
    found[agent] = (await checkedCall(server, `GET /v1/agents/${agent}/head`)).body.hash
  }
  return found
}
