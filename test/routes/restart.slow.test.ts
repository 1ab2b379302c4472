import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyCheckpoint } from '../../src/proof/node/compare-checkpoint.js'
import { checkedCall, headOf, newAgent, scopedKey } from '../support/http/answers.js'
import { isCaughtUp, openStream } from '../support/http/events.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { BeforeRestart } from '../support/server/before-restart.js'
import type { TestServer } from '../support/server/server.js'

let server: TestServer
const beforeKill = new BeforeRestart()
const before = new BeforeRestart()

const start = (dataDir?: string) =>
  startAuthServer({ env: { SERVICE_SHARDS: '2' }, ...(dataDir !== undefined && { dataDir }) })

beforeAll(async () => {
  server = await start()
  await beforeKill.run()
  expect(await server.halt('SIGKILL')).toBeNull()
  expect(filesWith(server.dataDir, created().body.key.slice('sf_key_'.length))).toEqual([])
  server = await start(server.dataDir)
  await before.run()
  expect(await server.halt()).toBe(0)
  expect(filesWith(server.dataDir, keys().kept.key)).toEqual([])
  server = await start(server.dataDir)
})
afterAll(() => server.stop())

/** The files of a directory that contain a text, in any common encoding. */
function filesWith(directory: string, text: string): string[] {
  const forms = [Buffer.from(text), Buffer.from(text, 'base64url')]
  const written = forms.flatMap((bytes) => [
    bytes,
    bytes.toString('hex'),
    bytes.toString('base64').slice(0, 40),
  ])
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => {
      const bytes = readFileSync(path)
      return written.some((form) => bytes.includes(form))
    })
}

const createWithKey = () =>
  checkedCall(server, 'POST /v1/admin/api-keys', {
    body: { name: 'once', scopes: ['records:read'], agents: ['team-a'] },
    headers: { 'idempotency-key': 'over a restart' },
  })
const created = beforeKill.add(createWithKey)

const keys = before.add(async () => {
  const kept = await scopedKey(server, ['records:read'])
  const gone = await scopedKey(server, ['records:read'])
  await checkedCall(server, `DELETE /v1/admin/api-keys/${gone.key_id}`)
  return { kept, gone }
})

// A page of agents that are not in memory reads the last block of each, with everything that was committed
// together.
describe('the list of agents with their status', () => {
  const names = Array.from({ length: 90 }, (_none, n) => `large-${String(n).padStart(2, '0')}`)
  before.add(async () => {
    for (const name of names) {
      await newAgent(server, name)
      const body = { data: { text: 'x'.repeat(250_000) } }
      expect((await checkedCall(server, `POST /v1/agents/${name}/records`, { body })).status).toBe(201)
    }
  })
  const pages = async () => {
    const found: { agents: string[]; statuses: unknown[] }[] = []
    for (let cursor: string | null = ''; cursor !== null && found.length < 100;) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await checkedCall(server, `GET /v1/agents?include=status&prefix=large-${after}`)
      found.push(body)
      cursor = body.next_cursor
    }
    return found
  }

  it('is truncated before it reads too much, and continues from there', async () => {
    const found = await pages()
    expect(found.length).toBeGreaterThan(1)
    expect(found.flatMap(({ agents }) => agents)).toEqual(names)
    const statuses = found.flatMap((page) => page.statuses)
    for (const [at, name] of names.entries())
      expect(statuses[at]).toEqual((await checkedCall(server, `GET /v1/agents/${name}/status`)).body)
    // All are in memory now, so nothing is read.
    expect(await pages()).toHaveLength(1)
  })
})

describe('keys', () => {
  it('are created once with their Idempotency-Key, and are not stored in the data directory', async () => {
    const again = await createWithKey()
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.text).toBe(created().text)
    const { key } = again.body
    expect((await checkedCall(server, 'GET /v1/agents/team-a/head', { key })).body.code).toBe(
      'agent_not_found',
    )
  })

  it('are valid if created, and invalid if deleted', async () => {
    const { kept, gone } = keys()
    expect((await checkedCall(server, 'GET /v1/agents/default/head', { key: kept.key })).status).toBe(200)
    expect((await checkedCall(server, 'GET /v1/agents/default/head', { key: gone.key })).status).toBe(401)
    expect(await headOf(server, 'default')).toMatchObject({ seq: 0 })
  })

  const rowOf = async (keyId: string) => {
    const { api_keys: rows } = (await checkedCall(server, 'GET /v1/admin/api-keys')).body
    return rows.find((one: { key_id: string }) => one.key_id === keyId)
  }
  const used = before.add(async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'])
    expect(await rowOf(key_id)).toMatchObject({ made_by: 'root', line: key_id, last_used_at_ms: null })
    const fromMs = Date.now()
    await checkedCall(server, 'GET /v1/whoami', { key })
    const { last_used_at_ms: usedAtMs } = await rowOf(key_id)
    expect(usedAtMs).toBeGreaterThanOrEqual(fromMs)
    return { key_id, usedAtMs }
  })

  it('show when they were last used', async () => {
    const { key_id, usedAtMs } = used()
    expect((await rowOf(key_id)).last_used_at_ms).toBe(usedAtMs)
  })
})

describe('strands', () => {
  const writeOnce = () =>
    checkedCall(server, 'POST /v1/collections/once/records', {
      body: { data: { n: 1 } },
      headers: { 'idempotency-key': 'kept' },
    })
  const written = before.add(writeOnce)

  it('contain a record once with its Idempotency-Key', async () => {
    expect((await writeOnce()).text).toBe(written().text)
    expect(await headOf(server, 'once')).toMatchObject({ seq: 1 })
  })

  const policies = [
    { actions: ['read', 'write', 'delete'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
  ]
  before.add(async () => {
    await newAgent(server, 'governed-rows')
    return checkedCall(server, 'PUT /v1/agents/governed-rows/policies', { body: { policies } })
  })

  it('keep their row policies', async () => {
    expect((await checkedCall(server, 'GET /v1/agents/governed-rows/policies')).body.policies).toEqual(
      policies,
    )
  })

  const asOf = async (ts: string) => {
    const { status, body, text } = await checkedCall(server, `GET /v1/strand/as-of?agent=rotated&ts=${ts}`)
    expect(status, text).toBe(200)
    return body
  }
  const rotated = before.add(async () => {
    await newAgent(server, 'rotated')
    const { body } = await checkedCall(server, 'POST /v1/agents/rotated/records', {
      body: { data: { n: 0 } },
    })
    await checkedCall(server, 'POST /v1/agents/rotated/rotate-key', { body: { seed_hex: '5e'.repeat(32) } })
    const shown = await asOf(body.timestamp_hlc)
    const { public_key: publicKey } = (await checkedCall(server, 'GET /v1/agents/rotated/status')).body
    expect(verifyCheckpoint(shown.checkpoint, publicKey)).toMatchObject({ size: 2 })
    return { ts: body.timestamp_hlc, shown }
  })

  it('have the same checkpoint for a time before a rotation', async () => {
    const { ts, shown } = rotated()
    expect(await asOf(ts)).toEqual(shown)
  })
})

it('the server had nothing to log', () => {
  expect(server.stderr()).toBe('')
})

describe('a stream ticket', () => {
  const opened = async (ticket: string) => {
    const stream = await openStream(server, `/v1/agents/default/stream?ticket=${ticket}`, { key: null })
    await stream.until(isCaughtUp)
  }
  const tickets = beforeKill.add(async () => {
    const issue = () => checkedCall(server, 'POST /v1/stream/tickets')
    const [used, unused] = [(await issue()).body.ticket, (await issue()).body.ticket]
    await opened(used)
    return [used, unused]
  })
  before.add(() => Promise.all(tickets().map(opened)))

  // A native EventSource sends the same URL again, and stops permanently at any status other than 200.
  it('reopens only its stream after a kill and after a regular stop', async () => {
    for (const ticket of tickets()) {
      await opened(ticket)
      const other = await checkedCall(server, `GET /v1/agents/other/stream?ticket=${ticket}`, { key: null })
      expect(other.status).toBe(401)
      expect(filesWith(server.dataDir, ticket)).toEqual([])
    }
  })
})
