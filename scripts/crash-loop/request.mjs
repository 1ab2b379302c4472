import { Agent, request } from 'node:http'
import { rootKey } from './victim.mjs'

const agent = new Agent({ keepAlive: true })

/**
 * Sends one request, with the root key unless its headers name another, and reads the whole answer. By node:http, which
 * takes half the processor time of `fetch`: that is the servers' to have.
 * @param {string} url of the server
 * @param {{method: string, path: string, headers?: Record<string, string>, body?: string}} call
 * @returns {Promise<{status: number, replayed: boolean, body: any}>} rejects when the server goes before its answer
 */
export function send(url, { method, path, headers = {}, body }) {
  return new Promise((resolve, reject) => {
    const asked = request(url + path, {
      method,
      agent,
      headers: {
        authorization: `Bearer ${rootKey}`,
        ...headers,
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
      },
    })
    asked.on('error', reject)
    asked.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece) => (text += piece))
      response.on('error', reject)
      response.on('end', () => {
        try {
          resolve({
            status: response.statusCode ?? 0,
            replayed: response.headers['idempotency-replayed'] === 'true',
            body: text === '' ? undefined : JSON.parse(text),
          })
        } catch (error) {
          reject(error)
        }
      })
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
