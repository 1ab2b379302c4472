import { send } from '../request.mjs'
import { seededRandom } from '../seeded-random.mjs'
import { Actor } from './actor.mjs'
import { Audits } from './audits.mjs'
import { AuthActor } from './auth.mjs'
import { Graph } from './graph.mjs'
import { Mutations } from './mutations.mjs'

/** All actors of one data directory. */
export class Cast {
  #audits = new Audits()
  #auth = [new AuthActor('ann'), new AuthActor('ben')]
  #actors = [
    ...this.#auth,
    new Actor('graph', new Graph('graph')),
    new Actor('mutations', new Mutations('mutations')),
  ]

  /**
   * Makes every actor call the server, one call after another, until the server ends.
   * @param {string} url
   * @param {{seed: number, stopped: () => boolean}} round
   * @returns {Promise<number>} the number of answered calls
   */
  async act(url, { seed, stopped }) {
    const answered = this.#actors.map(async (actor, index) => {
      actor.begin(seededRandom(seed + index))
      for (let count = 0; ; count++) {
        if (stopped()) return count
        try {
          await actor.act(url)
        } catch (error) {
          if (!isDisconnect(error)) throw error
          return count
        }
      }
    })
    return (await Promise.all(answered)).reduce((sum, count) => sum + count, 0)
  }

  /**
   * Checks the state after a crash on the restarted server.
   * @param {string} url
   * @param {boolean} whole whether everything is checked, not only changes since the last check
   * @returns {Promise<string[]>} the faults
   */
  async check(url, whole) {
    const users = await usersOf(url)
    await this.#audits.read(url)
    await Promise.all(this.#actors.map((actor) => actor.check(url, { audits: this.#audits, users, whole })))
    const known = new Set(this.#auth.flatMap(({ emails }) => emails))
    const unknown = [...users.keys()].filter((email) => !known.has(email))
    return [
      ...this.#actors.flatMap(({ faults }) => faults.splice(0)),
      ...unknown.map((email) => `The user ${email} exists without an audit record`),
    ]
  }
}

/** @returns {Promise<Map<string, any>>} by e-mail */
async function usersOf(url) {
  const users = new Map()
  let cursor
  do {
    const query = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { body } = await send(url, { method: 'GET', path: `/v1/auth/users?limit=1000${query}` })
    for (const user of body.users) users.set(user.email, user)
    cursor = body.next_cursor ?? undefined
  } while (cursor !== undefined)
  return users
}

/** Whether an error is a broken connection, also during an answer. */
function isDisconnect(error) {
  return error instanceof Error && ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(error.code)
}
