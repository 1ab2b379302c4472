import { afterEach, beforeEach, expect, it } from 'vitest'
import { exchange, send } from '../../../scripts/crash-loop/request.mjs'
import { type ClosingServer, startClosingServer } from '../../support/http/closing-server.js'
import { fetchAfterClose } from '../../support/http/fetch-seen.js'

// A busy process does not notice that the server has closed a connection, and sends its next request on it.
// `fetch` then fails, as it did for an export in the power-loss tests.

let server: ClosingServer
beforeEach(async () => {
  server = await startClosingServer()
})
afterEach(() => server.stop())

/** Sends a request on a kept-alive connection, and one more after the server has closed it. */
async function twice(request: () => Promise<unknown>, busyMs = 0): Promise<unknown> {
  await request()
  await server.closeUnseen()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busyMs)
  return request()
}

it.each([
  ['a read', { method: 'GET', path: '/v1/strand/export?agent=a' }],
  ['a query', { method: 'POST', path: '/v1/agents/a/query', body: '{}' }],
  [
    'a call under an Idempotency-Key',
    { method: 'POST', path: '/v1/agents', headers: { 'idempotency-key': 'a' }, body: '{}' },
  ],
])('%s is retried if the server has closed the connection', async (_name, call) => {
  expect(await twice(() => exchange(server.url, call))).toMatchObject({ status: 200, text: '{}' })
  expect(server.connections()).toBe(2)
  expect(await twice(() => send(server.url, call))).toMatchObject({ status: 200, body: {} })
})

it('a write that could be applied twice is not retried', async () => {
  const call = { method: 'POST', path: '/v1/agents', body: '{}' }
  await expect(twice(() => send(server.url, call))).rejects.toThrow(/^POST \/v1\/agents: /)
  expect(server.connections()).toBe(1)
})

it('a call of a test uses a new connection after the process was busy', async () => {
  const requestWith = (fetchWith: typeof fetch) => async () =>
    (await fetchWith(server.url, { method: 'POST' })).text()
  await expect(twice(requestWith(fetch))).rejects.toThrow('fetch failed')
  expect(await twice(requestWith(fetchAfterClose), 1_100)).toBe('{}')
})
