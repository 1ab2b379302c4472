import { readdirSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { register, type Account } from '../support/auth/accounts.js'
import { ask, newAgent, scopedKey } from '../support/http/answers.js'
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
/** A moment in the middle of what is written at first. */
const moments: string[] = []
/** Cursors of global streams that were handed out by servers of any number of shards, and what was told by then. */
const cursors: { id: string; told: Set<string> }[] = []

const env = { SERVICE_GOVERNED_AUTO_APPROVE_SECS: '604800' }

/** Writes that are sent again after each move: under their keys, they must answer as at first. */
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

/** Lines for all sensors, more than one chunk of them where none are counted, and some bad ones. */
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
    const headers = { ...options.headers, 'idempotency-key': `kept-${n}` }
    answers.push(await ask(server, route, { ...options, headers }))
  }
  return answers
}

async function write(agent: string, data: object): Promise<string> {
  const { status, body } = await ask(server, `POST /v1/agents/${agent}/records`, { body: { data } })
  expect(status).toBe(201)
  return body.id
}

const nameOf = ({ data }: TestEvent) => `${data.agent} ${data.seq}`
const records = (events: readonly TestEvent[]) => events.filter(({ event }) => event === 'record')

/** Everything that a global stream tells until it has met live. */
async function told(headers: Record<string, string>): Promise<TestEvent[]> {
  const stream = await openStream(server, '/v1/stream?since=0', { headers })
  await stream.until(isCaughtUp)
  stream.close()
  return stream.events
}

/** Keeps cursors from the middle and from the end of what a global stream tells. */
async function keepCursors(headers: Record<string, string> = {}, before = new Set<string>()): Promise<void> {
  const events = await told(headers)
  const shown = records(events)
  for (const at of [Math.floor(shown.length / 3), shown.length - 1]) {
    const { id = '' } = shown[at] ?? {}
    if (id !== '') cursors.push({ id, told: new Set([...before, ...shown.slice(0, at + 1).map(nameOf)]) })
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
  loggedOut = await register(server, 'gone@example.com')
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
  moments.push((await ask(server, 'GET /v1/agents/sensor-11/head')).body.timestamp_hlc)
  for (const sensor of sensors.slice(0, 6)) {
    const [first = '', second = '', third = ''] = hashes.get(sensor) ?? []
    for (const hash of [first, second]) {
      expect((await ask(server, `DELETE /v1/agents/${sensor}/records/${hash}`)).status).toBe(200)
    }
    expect((await ask(server, `POST /v1/agents/${sensor}/records/${second}/restore`)).status).toBe(200)
    expect((await ask(server, `POST /v1/agents/${sensor}/records/${third}/erase`)).status).toBe(200)
    await removeEdge(server, [sensor, 'governed', 'knows'])
    await addEdge(server, [sensor, 'governed', 'knows', 7])
  }
  for (const sensor of ['sensor-0', 'sensor-7']) {
    expect((await ask(server, `POST /v1/agents/${sensor}/rotate-key`)).status).toBe(200)
    const batch = { records: upTo(5).map((n) => ({ data: { sealed: n } })) }
    const route = `POST /v1/agents/${sensor}/records/batch?signing=group`
    expect((await ask(server, route, { body: batch })).status).toBe(201)
  }
  const policies = [{ actions: ['read'], conditions: [{ field: 'n', op: 'eq', value: 1 }] }]
  expect((await ask(server, 'PUT /v1/agents/sensor-8/policies', { body: { policies } })).status).toBe(200)
  expect((await ask(server, 'PUT /v1/agents/sensor-9/zone', { body: { zone: 'protected' } })).status).toBe(
    200,
  )
  for (const agent of ['governed', 'governed', 'sensor-9', 'sensor-9']) {
    const { status } = await ask(
      server,
      `DELETE /v1/agents/${agent}/records/${await write(agent, { waits: 1 })}`,
    )
    expect(status).toBe(202)
  }
  const signedOut = { key: loggedOut.token, body: { refresh_token: loggedOut.refreshToken } }
  expect((await ask(server, 'POST /v1/auth/logout', signedOut)).status).toBe(200)
  moments.push((await ask(server, 'GET /v1/agents/sensor-9/head')).body.timestamp_hlc)
}, 240_000)

afterAll(() => server?.stop())

describe('a directory that is moved from 1 to 2, 3, and back to 1 shards', () => {
  let answers: TestAnswer[]

  it('answers writes under their keys, and gives cursors, before', async () => {
    answers = await sendKeyed()
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 200, 200, 200, 201, 201, 201, 201])
    expect(answers[4]?.body).toMatchObject({ accepted: 3_000, rejected: 3 })
    await keepCursors()
    await write('sensor-1', { after: 'the cursors' })
  })

  describe.each([2, 3, 1])('then, with %i,', (shards) => {
    it('answers every read as before', { timeout: 120_000 }, async () => {
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

    it('answers what was written under a key as at first, and writes nothing', async () => {
      const before = await heads()
      const again = await sendKeyed()
      // Parsed: shards answer in any order, and so the agents of a summary come.
      for (const [n, { status, body }] of again.entries()) {
        expect([keyed[n]?.[0], status, body]).toEqual([keyed[n]?.[0], answers[n]?.status, answers[n]?.body])
      }
      expect(again.map(({ headers }) => headers.get('idempotency-replayed'))).toEqual(again.map(() => 'true'))
      const other = { body: { data: { keyed: 'other' } }, headers: { 'idempotency-key': 'kept-0' } }
      const { status, body } = await ask(server, 'POST /v1/agents/sensor-1/records', other)
      expect([status, body.code]).toEqual([422, 'idempotency_key_reused'])
      expect(await heads()).toEqual(before)
    })

    it('goes on with global streams behind every cursor that was handed out: nothing twice, nothing missed', async () => {
      await write('sensor-2', { shards })
      const all = records(await told({})).map(nameOf)
      expect(new Set(all).size).toBe(all.length)
      for (const { id, told: before } of cursors.slice()) {
        const since = { 'last-event-id': id }
        const rest = records(await told(since)).map(nameOf)
        expect(rest.toSorted(), id).toEqual(all.filter((name) => !before.has(name)).toSorted())
        // And from the middle of that again.
        if (cursors.length < 12) await keepCursors(since, before)
      }
      await keepCursors()
    })

    it('lets users in who are signed in or sign in, and nobody who is not', async () => {
      for (const [base, account] of [
        ['/v1/auth', root],
        ['/v1/organisms/acme/auth', member],
      ] as const) {
        expect((await ask(server, `GET ${base}/me`, { key: account.token })).status).toBe(200)
        const body = { refresh_token: account.refreshToken }
        const renewed = await ask(server, `POST ${base}/refresh`, { key: null, body })
        expect(renewed.status, renewed.text).toBe(200)
        account.refreshToken = renewed.body.refresh_token
        account.token = renewed.body.token
        const { email, password } = account
        const again = await ask(server, `POST ${base}/login`, { key: null, body: { email, password } })
        expect(again.status).toBe(200)
      }
      expect((await ask(server, 'GET /v1/auth/me', { key: loggedOut.token })).status).toBe(401)
    })

    it('carries out proposals that were open, by a vote', async () => {
      const { body } = await ask(server, 'GET /v1/proposals?state=proposed')
      const [first] = body.proposals
      const route = `POST /v1/proposals/${encodeURIComponent(first.proposal_id)}/approve`
      const approved = await ask(server, route, { key: decider })
      expect([approved.status, approved.body.state], approved.text).toEqual([200, 'applied'])
      const record = await ask(server, `GET /v1/agents/${first.agent}/records/${first.target}`)
      expect(record.body.deleted).toBe(true)
    })

    it('writes on: on strands that were there, of new agents, and none with the key of another', async () => {
      for (const sensor of sensors) await write(sensor, { shards })
      for (const n of upTo(8)) await newAgent(server, `made-${shards}-${n}`)
      await addEdge(server, ['sensor-1', `made-${shards}-1`, 'likes', shards])
      await removeEdge(server, ['sensor-2', 'sensor-7'])
      await addEdge(server, ['sensor-2', 'sensor-7', 'likes', shards])
      const seed = { name: 'thief', zone: 'free', seed_hex: 'ab'.repeat(32) }
      const taken = await ask(server, 'POST /v1/agents', { body: seed })
      expect([taken.status, taken.body.code]).toEqual([409, 'key_in_use'])
      const organism = await ask(server, 'POST /v1/organisms', { body: { organism_id: 'acme', name: 'x' } })
      expect(organism.status).toBe(409)
    })
  })

  it('has strands that verify in the end', async () => {
    for (const agent of [...sensors, 'default', 'governed', 'seeded', 'emerged', 'acme::auth']) {
      const { body } = await ask(server, `GET /v1/agents/${agent}/status`)
      const { text } = await ask(server, `GET /v1/strand/export?agent=${agent}`)
      const verified = await verifyExport(text.trimEnd().split('\n'), { publicKey: body.public_key })
      expect(verified, agent).toMatchObject({ ok: true, chainHead: body.chain_head })
    }
  })
})

/** Where every strand ends. */
async function heads(): Promise<Record<string, string>> {
  const { body } = await ask(server, 'GET /v1/agents?limit=1000')
  const found: Record<string, string> = {}
  for (const agent of body.agents) {
    found[agent] = (await ask(server, `GET /v1/agents/${agent}/head`)).body.hash
  }
  return found
}
