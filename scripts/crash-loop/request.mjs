import { Agent, request } from 'node:http'
import { rootKey } from './victim.mjs'

/** The server closes a connection that is idle for ten seconds, so none is left idle that long. */
const agent = new Agent({ keepAlive: true, timeout: 5_000 })

/** Error codes of a connection that the server has closed. */
const CLOSED_CODES = new Set(['ECONNRESET', 'EPIPE'])

/**
 * A request to a server.
 * @typedef {{method: string, path: string, headers?: Record<string, string>, body?: string}} Call
 */

/**
 * Sends a request with the root key, unless its headers contain another, and reads the JSON answer.
 * @param {string} url of the server
 * @param {Call} call
 * @returns {Promise<{status: number, replayed: boolean, body: any}>} rejects if the server ends before the
 * answer
 */
export async function send(url, call) {
  const { status, headers, text } = await exchange(url, call)
  return {
    status,
    replayed: headers['idempotency-replayed'] === 'true',
    body: text === '' ? undefined : JSON.parse(text),
  }
}

/**
 * Sends a request like `send`, and reads the answer as text. Uses node:http, which takes half the processor
 * time of `fetch` and so leaves more for the servers. If a reused connection was closed by the server, a read
 * or a call with an Idempotency-Key is repeated, because a busy process notices the end of a connection late.
 * `fetch` fails in this case.
 * @param {string} url of the server
 * @param {Call} call
 * @returns {Promise<{status: number, headers: import('node:http').IncomingHttpHeaders, text: string}>}
 * rejects if the server ends before or during the answer
 */
export function exchange(url, call) {
  const { method, path, headers = {}, body } = call
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      error.message = `${method} ${path}: ${error.message}`
      reject(error)
    }
    const outgoing = request(url + path, {
      method,
      agent,
      headers: {
        authorization: `Bearer ${rootKey}`,
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
    })
    outgoing.on('error', (error) => {
      const mayRepeat = method === 'GET' || path.endsWith('/query') || 'idempotency-key' in headers
      if (mayRepeat && outgoing.reusedSocket && 'code' in error && CLOSED_CODES.has(String(error.code))) {
        exchange(url, call).then(resolve, reject)
      } else fail(error)
    })
    outgoing.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece) => (text += piece))
      response.on('error', fail)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    outgoing.end(body)
  })
}

/**
 * Runs `work` on each item, `width` in parallel.
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => Promise<void>} work
 * @param {number} [width]
 */
export async function forEachOf(items, work, width = 16) {
  const left = items.values()
  const worker = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}
