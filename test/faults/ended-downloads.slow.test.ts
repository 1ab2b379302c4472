// @run on node:http
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../support/auth/accounts.js'
import { ask, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { metricsNow } from '../support/http/metrics.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * A credential that ends while an export is still going out: whoever had it went on reading for as long as they liked, slowly
 * enough, what was written later too.
 */

/** More than the buffers of a connection hold. */
const LINES = 60_000

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'big')
  const line = JSON.stringify({ text: 'x'.repeat(300) })
  const raw = `${line}\n`.repeat(LINES)
  const headers = { 'content-type': 'application/x-ndjson' }
  const { body } = await call(server, 'POST /v1/ingest/big?signing=group', { raw, headers })
  expect(body).toMatchObject({ accepted: LINES })
})
afterAll(() => server.stop())

/** Begins an export and reads a little of it ten times a second: who reads nothing is hung up on. */
async function begin(key: string): Promise<RawConnection> {
  const connection = await RawConnection.open(server)
  connection.write(
    `GET /v1/strand/export?agent=big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  )
  await connection.until(({ text }) => text.includes('strand-export/v1'))
  connection.socket.on('data', () => connection.socket.pause())
  const reading = setInterval(() => connection.socket.resume(), 100)
  connection.socket.once('close', () => clearInterval(reading))
  return connection
}

async function underWay(): Promise<number> {
  const text = await metricsNow(() => ask(server, 'GET /metrics'))
  // Beside the one that asks.
  return Number(/^strandfast_http_requests_in_flight (\d+)$/m.exec(text)?.[1]) - 1
}

/** The export ends without its trailer. */
async function expectEnded(connection: RawConnection): Promise<void> {
  await eventually(async () => (await underWay()) === 0)
  const { statuses, text } = await connection.ended()
  expect(statuses).toEqual([200])
  expect(text).not.toContain('"chain_head"')
}

describe('an export that is going out', () => {
  it('ends with its key', async () => {
    const { key, key_id: id } = await scopedKey(server, ['records:read'])
    const connection = await begin(key)
    expect(await underWay()).toBe(1)
    await ask(server, `DELETE /v1/admin/api-keys/${id}`)
    await expectEnded(connection)
  })

  it('ends with the session of its user', async () => {
    const { token } = await register(server, 'reader@example.org')
    await ask(server, 'PUT /v1/agents/big/policies', {
      body: { policies: [{ actions: ['read'], conditions: [] }] },
    })
    const connection = await begin(token)
    expect(await underWay()).toBe(1)
    await ask(server, 'POST /v1/auth/logout', { key: token, body: {} })
    await expectEnded(connection)
  })

  it('ends with a change of the policies that it was made by, for users alone', async () => {
    await newAgent(server, 'other')
    const policies = [{ actions: ['read'], conditions: [] }]
    const put = (agent: string, types: string[]) => {
      const body = { policies: policies.map((one) => ({ ...one, types })) }
      return ask(server, `PUT /v1/agents/${agent}/policies`, { body })
    }
    await put('big', ['record'])
    const { token } = await register(server, 'changed@example.org')
    const { key } = await scopedKey(server, ['records:read'])
    const [ofUser, ofKey] = [await begin(token), await begin(key)]
    await put('other', ['record'])
    expect(await underWay()).toBe(2)
    await put('big', ['note'])
    await eventually(async () => (await underWay()) === 1)
    expect((await ofUser.ended()).text).not.toContain('"chain_head"')
    ofKey.socket.destroy()
    await eventually(async () => (await underWay()) === 0)
  })

  it('goes on to its end with a key that stays', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const { text } = await call(server, 'GET /v1/strand/export?agent=big', { key })
    expect(text).toContain('"chain_head"')
  })
})
