import { send } from '../request.mjs'

/**
 * The facts of an audit record.
 * @typedef {{type: string, userId: string | null, sid: string | null}} Audit
 */

/** Reads the audit records of a server, each once, by request, which is identified by its user agent. */
export class Audits {
  /** @type {Map<string, Audit[]>} */
  #byRequest = new Map()
  #seenSeq = -1
  /** The HLC of the last record, from which the next read starts. @type {string \| number} */
  #seenTs = 0

  /**
   * Reads new records.
   * @param {string} url
   */
  async read(url) {
    const headers = { 'content-type': 'application/json' }
    const path = '/v1/agents/default/query'
    const query = { type: 'time_range', from_ts: this.#seenTs, types: ['auth/*'], order: 'asc', limit: 1_000 }
    let cursor
    do {
      const body = JSON.stringify({ ...query, cursor })
      const answer = await send(url, { method: 'POST', path, headers, body })
      for (const record of answer.body.records) this.#add(record)
      cursor = answer.body.next_cursor ?? undefined
    } while (cursor !== undefined)
  }

  /**
   * The audit records of one request, in order.
   * @param {string} requestId
   */
  of(requestId) {
    return this.#byRequest.get(requestId) ?? []
  }

  #add({ seq, type, payload, timestamp_hlc: timestamp }) {
    if (seq <= this.#seenSeq) return
    this.#seenSeq = seq
    this.#seenTs = timestamp
    const { user_agent: requestId, user_id: userId, sid } = payload
    this.#byRequest.set(requestId, [...this.of(requestId), { type, userId, sid }])
  }
}
