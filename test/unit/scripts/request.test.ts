import { afterEach, beforeEach, expect, it } from 'vitest'
import { exchange, send } from '../../../scripts/crash-loop/request.mjs'
import { type ClosingServer, startClosingServer } from '../../support/http/closing-server.js'
import { fetchSeen } from '../../support/http/fetch-seen.js'

// A process that was busy for long has not seen that the server has closed a connection, and sends its next request on it.
// An export of the power losses was read by `fetch`, which then fails.

let server: ClosingServer
beforeEach(async () => {
  server = await startClosingServer()
})
afterEach(() => server.stop())

/** A request on a connection that is kept, and one on the same after the server has closed it. */
async function twice(ask: () => Promise<unknown>, busyMs = 0): Promise<unknown> {
  await ask()
  await server.closeUnseen()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busyMs)
  return ask()
}

it.each([
  ['a read', { method: 'GET', path: '/v1/strand/export?agent=a' }],
  ['a query', { method: 'POST', path: '/v1/agents/a/query', body: '{}' }],
  [
    'a call under an Idempotency-Key',
    { method: 'POST', path: '/v1/agents', headers: { 'idempotency-key': 'a' }, body: '{}' },
  ],
])('%s is sent again where the server had closed the connection', async (_name, call) => {
  expect(await twice(() => exchange(server.url, call))).toMatchObject({ status: 200, text: '{}' })
  expect(server.connections()).toBe(2)
  expect(await twice(() => send(server.url, call))).toMatchObject({ status: 200, body: {} })
})

it('a write that would be there twice is not sent again', async () => {
  const call = { method: 'POST', path: '/v1/agents', body: '{}' }
  await expect(twice(() => send(server.url, call))).rejects.toThrow(/^POST \/v1\/agents: /)
  expect(server.connections()).toBe(1)
})

it('a call of a test, of whatever method, goes by a new connection after this process was busy', async () => {
  const askBy = (how: typeof fetch) => async () => (await how(server.url, { method: 'POST' })).text()
  await expect(twice(askBy(fetch))).rejects.toThrow('fetch failed')
  expect(await twice(askBy(fetchSeen), 1_100)).toBe('{}')
})
