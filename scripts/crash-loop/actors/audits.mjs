import { send } from '../request.mjs'

/**
 * What one audit record says.
 * @typedef {{type: string, userId: string | null, sid: string | null}} Audit
 */

/** Reads the audit records of a server by the requests that they tell of, each record once. */
export class Audits {
  /** @type {Map<string, Audit[]>} */
  #byRequest = new Map()
  #seen = 0

  /**
   * Reads what has come since.
   * @param {string} url
   */
  async read(url) {
    const { body } = await send(url, { method: 'GET', path: '/v1/agents/default/head' })
    if (body.seq < this.#seen) return
    const path = `/v1/strand/export?from_seq=${this.#seen}`
    const { text } = await send(url, { method: 'GET', path }, { parsed: false })
    for (const line of text.trimEnd().split('\n').slice(1, -1)) this.#take(JSON.parse(line))
    this.#seen = body.seq + 1
  }

  /**
   * The audit records of one request, in their order.
   * @param {string} requestId
   */
  of(requestId) {
    return this.#byRequest.get(requestId) ?? []
  }

  #take({ h, body }) {
    const type = /^type (auth\/.*)$/m.exec(h)?.[1]
    if (type === undefined) return
    const { request_id: requestId, user_id: userId, sid } = JSON.parse(body)
    this.#byRequest.set(requestId, [...this.of(requestId), { type, userId, sid }])
  }
}
