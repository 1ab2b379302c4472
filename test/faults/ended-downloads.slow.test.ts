// @run on node:http
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { register } from '../support/auth/accounts.js'
import { checkedCall, newAgent, scopedKey } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { metricsNow } from '../support/http/metrics.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Regression test for credentials that end during an export: a slow reader could continue to read without
 * limit, also records that were written later.
 */

/** Lines that, with 4,500 bytes each, do not fit into the buffers of a connection. */
const LINES = 8_000

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'big')
  const line = JSON.stringify({ text: 'x'.repeat(4_500) })
  const raw = `${line}\n`.repeat(LINES)
  const headers = { 'content-type': 'application/x-ndjson' }
  const { body } = await call(server, 'POST /v1/ingest/big?signing=group', { raw, headers })
  expect(body).toMatchObject({ accepted: LINES })
})
afterAll(() => server.stop())

/**
 * Begins an export and reads a little of it ten times a second, because the server disconnects clients that
 * read nothing.
 */
async function begin(key: string): Promise<RawConnection> {
  const connection = await RawConnection.open(server)
  connection.write(
    `GET /v1/strand/export?agent=big HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  )
  await connection.until(({ text }) => text.includes('strand-export/v1'))
  const { socket } = connection
  socket.on('data', pause)
  const reading = setInterval(() => socket.resume(), 100)
  socket.once('close', () => clearInterval(reading))
  return connection
}

function pause(this: Socket): void {
  this.pause()
}

/** Reads the rest of an export that the server has ended. @returns its whole text */
async function restOf(connection: RawConnection): Promise<string> {
  connection.socket.off('data', pause).resume()
  const { statuses, text } = await connection.ended()
  expect(statuses).toEqual([200])
  return text
}

async function inFlight(): Promise<number> {
  const text = await metricsNow(() => checkedCall(server, 'GET /metrics'))
  // Without the request for metrics.
  return Number(/^strandfast_http_requests_in_flight (\d+)$/m.exec(text)?.[1]) - 1
}

/** Expects that the export ends without its trailer. */
async function expectEnded(connection: RawConnection): Promise<void> {
  await eventually(async () => (await inFlight()) === 0)
  expect(await restOf(connection)).not.toContain('"chain_head"')
}

describe('an export in progress', () => {
  it('ends when its key is deleted', async () => {
    const { key, key_id: id } = await scopedKey(server, ['records:read'])
    const connection = await begin(key)
    expect(await inFlight()).toBe(1)
    await checkedCall(server, `DELETE /v1/admin/api-keys/${id}`)
    await expectEnded(connection)
  })

  it('ends when the session of its user ends', async () => {
    const { token } = await register(server, 'reader@example.org')
    await checkedCall(server, 'PUT /v1/agents/big/policies', {
      body: { policies: [{ actions: ['read'], conditions: [] }] },
    })
    const connection = await begin(token)
    expect(await inFlight()).toBe(1)
    await checkedCall(server, 'POST /v1/auth/logout', { key: token, body: {} })
    await expectEnded(connection)
  })

  it('ends when the policies of its agent change, for users only', async () => {
    await newAgent(server, 'other')
    const policies = [{ actions: ['read'], conditions: [] }]
    const put = (agent: string, types: string[]) => {
      const body = { policies: policies.map((one) => ({ ...one, types })) }
      return checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body })
    }
    await put('big', ['record'])
    const { token } = await register(server, 'changed@example.org')
    const { key } = await scopedKey(server, ['records:read'])
    const [ofUser, ofKey] = [await begin(token), await begin(key)]
    await put('other', ['record'])
    expect(await inFlight()).toBe(2)
    await put('big', ['note'])
    await eventually(async () => (await inFlight()) === 1)
    expect(await restOf(ofUser)).not.toContain('"chain_head"')
    ofKey.socket.destroy()
    await eventually(async () => (await inFlight()) === 0)
  })

  it('is complete when its key stays valid', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const { text } = await call(server, 'GET /v1/strand/export?agent=big', { key })
    expect(text).toContain('"chain_head"')
  })
})
