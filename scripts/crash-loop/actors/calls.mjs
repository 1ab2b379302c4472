import { isDeepStrictEqual } from 'node:util'
import { send } from '../request.mjs'

/** The number of answered calls that are repeated after a crash. */
const RESENT = 12

/**
 * A write of an actor.
 * @typedef {object} Call
 * @property {string} name
 * @property {{method: string, path: string, body?: object, key?: string}} request `key`: a credential other
 * than the root key
 * @property {number} [expected] the status of the answer, 200 when absent
 * @property {(body: any) => void} done records that it was executed
 */

/**
 * The writes of an actor, one after another, each with an Idempotency-Key. After a crash they are repeated
 * and must take effect exactly once, whether they were answered or not.
 */
export class Calls {
  /** The faults so far. @type {string[]} */
  faults = []
  #name
  #created = 0
  /** @type {{id: string, call: Call, body: any}[]} */
  #answered = []
  /** @type {{id: string, call: Call} | undefined} */
  #pending

  /** @param {string} name begins the keys */
  constructor(name) {
    this.#name = name
  }

  /**
   * Makes a call; rejects if the server ends before its answer.
   * @param {string} url
   * @param {Call} call
   */
  async make(url, call) {
    const id = `${this.#name}-${this.#created++}`
    this.#pending = { id, call }
    const { status, body } = await sendCall(url, call, id)
    this.#pending = undefined
    if (status === (call.expected ?? 200)) this.#confirm(id, call, body)
    else if (status !== 503) this.#fault(call, `returned ${status} ${body?.code}`)
  }

  /**
   * Repeats the call that a crash interrupted, and some answered ones.
   * @param {string} url
   */
  async resend(url) {
    for (const { id, call, body } of this.#answered.slice(-RESENT)) {
      const again = await sendCall(url, call, id)
      if (!again.replayed || !isDeepStrictEqual(again.body, body))
        this.#fault(
          call,
          `returned another answer when repeated: ${again.status} ${JSON.stringify(again.body)}`,
        )
    }
    this.#answered = []
    if (this.#pending === undefined) return
    const { id, call } = this.#pending
    this.#pending = undefined
    const { status, body } = await sendCall(url, call, id)
    if (status === (call.expected ?? 200)) call.done(body)
    else this.#fault(call, `was interrupted, and returned ${status} ${body?.code} when repeated`)
  }

  #confirm(id, call, body) {
    this.#answered.push({ id, call, body })
    call.done(body)
  }

  #fault({ name }, what) {
    this.faults.push(`${name} (${this.#name}) ${what}`)
  }
}

function sendCall(url, { request: { method, path, body, key } }, id) {
  const headers = {
    'idempotency-key': id,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  }
  return send(url, { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}
