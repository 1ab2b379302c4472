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
   * Has every actor act, one call after the other, until the server is gone.
   * @param {string} url
   * @param {{seed: number, stopped: () => boolean}} round
   * @returns {Promise<number>} how many calls were answered
   */
  async act(url, { seed, stopped }) {
    const answered = this.#actors.map(async (actor, index) => {
      actor.begin(seededRandom(seed + index))
      for (let count = 0; ; count++) {
        if (stopped()) return count
        try {
          await actor.act(url)
        } catch (error) {
          if (!isGone(error)) throw error
          return count
        }
      }
    })
    return (await Promise.all(answered)).reduce((sum, count) => sum + count, 0)
  }

  /**
   * Looks at what a crash has left, by a server that was started again.
   * @param {string} url
   * @param {boolean} whole whether everything is looked at, not only what was touched since the last time
   * @returns {Promise<string[]>} what is wrong
   */
  async check(url, whole) {
    const users = await usersOf(url)
    await this.#audits.read(url)
    await Promise.all(this.#actors.map((actor) => actor.check(url, { audits: this.#audits, users, whole })))
    const known = new Set(this.#auth.flatMap(({ emails }) => emails))
    const unknown = [...users.keys()].filter((email) => !known.has(email))
    return [
      ...this.#actors.flatMap(({ faults }) => faults.splice(0)),
      ...unknown.map((email) => `The user ${email} is there without an audit record of its own`),
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

/** What a broken connection looks like; an answer that was cut off in its middle is one too. */
function isGone(error) {
  return error instanceof Error && ['ECONNRESET', 'ECONNREFUSED', 'EPIPE'].includes(error.code)
}
