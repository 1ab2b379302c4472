import { Agent, request } from 'node:http'
import { rootKey } from './victim.mjs'

/** The server closes a connection by which nothing came for ten seconds: none is left idle for so long. */
const agent = new Agent({ keepAlive: true, timeout: 5_000 })

/** What a connection ends with that the server has closed. */
const CLOSED_CODES = new Set(['ECONNRESET', 'EPIPE'])

/**
 * A request to a server.
 * @typedef {{method: string, path: string, headers?: Record<string, string>, body?: string}} Call
 */

/**
 * Sends one request, with the root key unless its headers name another, and reads the whole answer, which is JSON.
 * @param {string} url of the server
 * @param {Call} call
 * @returns {Promise<{status: number, replayed: boolean, body: any}>} rejects when the server goes before its answer
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
 * Sends one request as `send` does, and reads the whole answer as a text. Uses node:http, which takes half the processor
 * time of `fetch`, so that more is left for the servers. A read, or a call under an Idempotency-Key, on a connection that
 * the server has closed is sent again: where this process was busy for long, it uses one whose end it has not seen yet.
 * `fetch` does that too, and then fails.
 * @param {string} url of the server
 * @param {Call} call
 * @returns {Promise<{status: number, headers: import('node:http').IncomingHttpHeaders, text: string}>} rejects when the
 *   server goes before its answer, or within it
 */
export function exchange(url, call) {
  const { method, path, headers = {}, body } = call
  return new Promise((resolve, reject) => {
    const fail = (error) => {
      error.message = `${method} ${path}: ${error.message}`
      reject(error)
    }
    const asked = request(url + path, {
      method,
      agent,
      headers: {
        authorization: `Bearer ${rootKey}`,
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
    })
    asked.on('error', (error) => {
      const mayRepeat = method === 'GET' || path.endsWith('/query') || 'idempotency-key' in headers
      if (mayRepeat && asked.reusedSocket && 'code' in error && CLOSED_CODES.has(String(error.code))) {
        exchange(url, call).then(resolve, reject)
      } else fail(error)
    })
    asked.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece) => (text += piece))
      response.on('error', fail)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    asked.end(body)
  })
}

/**
 * Runs `work` on each item, `width` at a time.
 * @template T
 * @param {readonly T[]} items
 * @param {(item: T) => Promise<void>} work
 * @param {number} [width]
 */
export async function forEachOf(items, work, width = 16) {
  const left = items.values()
  const take = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: width }, take))
}
