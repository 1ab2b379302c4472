import { isDeepStrictEqual } from 'node:util'
import { send } from '../request.mjs'

/** Answered calls that are sent again after a crash. */
const RESENT = 12

/**
 * A write of an actor.
 * @typedef {object} Call
 * @property {string} name
 * @property {{method: string, path: string, body?: object, key?: string}} request `key`: a credential other than root's
 * @property {number} [expected] status of the answer, 200 unless named
 * @property {(body: any) => void} done notes that it was carried out
 */

/**
 * The writes of one actor, one after the other, each under an Idempotency-Key: after a crash they are sent again, and must
 * lead to the same thing once, whether they were answered or not.
 */
export class Calls {
  /** What is wrong. @type {string[]} */
  faults = []
  #name
  #made = 0
  /** @type {{id: string, call: Call, body: any}[]} */
  #answered = []
  /** @type {{id: string, call: Call} | undefined} */
  #underWay

  /** @param {string} name begins the keys */
  constructor(name) {
    this.#name = name
  }

  /**
   * Makes a call; rejects when the server goes before it is answered.
   * @param {string} url
   * @param {Call} call
   */
  async make(url, call) {
    const id = `${this.#name}-${this.#made++}`
    this.#underWay = { id, call }
    const { status, body } = await put(url, call, id)
    this.#underWay = undefined
    if (status === (call.expected ?? 200)) this.#take(id, call, body)
    else if (status !== 503) this.#fault(call, `was answered ${status} ${body?.code}`)
  }

  /**
   * Sends again what a crash cut off, and some that was answered.
   * @param {string} url
   */
  async resend(url) {
    for (const { id, call, body } of this.#answered.slice(-RESENT)) {
      const again = await put(url, call, id)
      if (!again.replayed || !isDeepStrictEqual(again.body, body))
        this.#fault(call, `sent again was answered otherwise: ${again.status} ${JSON.stringify(again.body)}`)
    }
    this.#answered = []
    if (this.#underWay === undefined) return
    const { id, call } = this.#underWay
    this.#underWay = undefined
    const { status, body } = await put(url, call, id)
    if (status === (call.expected ?? 200)) call.done(body)
    else this.#fault(call, `was cut off, and sent again answered ${status} ${body?.code}`)
  }

  #take(id, call, body) {
    this.#answered.push({ id, call, body })
    call.done(body)
  }

  #fault({ name }, what) {
    this.faults.push(`${name} (${this.#name}) ${what}`)
  }
}

function put(url, { request: { method, path, body, key } }, id) {
  const headers = {
    'idempotency-key': id,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
  }
  return send(url, { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
}
