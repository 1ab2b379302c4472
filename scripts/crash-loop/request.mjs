import { rootKey } from './victim.mjs'

/**
 * Sends one request, with the root key unless its headers name another, and reads the whole answer.
 * @param {string} url of the server
 * @param {{method: string, path: string, headers?: Record<string, string>, body?: string}} request
 * @returns {Promise<{status: number, replayed: boolean, body: any}>} rejects when the server goes before its answer
 */
export async function send(url, { method, path, headers = {}, body }) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${rootKey}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return {
    status: response.status,
    replayed: response.headers.get('idempotency-replayed') === 'true',
    body: text === '' ? undefined : JSON.parse(text),
  }
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
