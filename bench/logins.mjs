import { call } from './server.mjs'

/** Registered at once: fewer than passwords may wait for a thread. */
const REGISTERED_AT_ONCE = 32
/** Not on any list of common passwords. */
const PASSWORD = 'seven quiet otters under the bridge'

/**
 * Users of a load, each with the body that registers it and signs it in.
 * @param {number} count
 * @returns {{email: string, password: string}[]}
 */
export function benchUsers(count) {
  return Array.from({ length: count }, (_, index) => ({
    email: `user-${String(index).padStart(4, '0')}@bench.example.org`,
    password: PASSWORD,
  }))
}

/**
 * Registers the users.
 * @param {string} url of the route that registers one
 * @param {object[]} users each the body that registers one
 * @param {number} [status] of a good answer
 */
export async function registerAll(url, users, status = 201) {
  for (let from = 0; from < users.length; from += REGISTERED_AT_ONCE) {
    const some = users.slice(from, from + REGISTERED_AT_ONCE)
    await Promise.all(some.map((body) => call(url, { body, status })))
  }
}

/**
 * Logins with right passwords, in turn over the users, so that clients which go through them at the same time are
 * different users.
 * @param {{email: string, password: string}[]} users
 * @param {string} [path]
 * @returns {import('./records.mjs').LoadRequest[]}
 */
export function loginRequests(users, path = '/v1/auth/login') {
  return users.map((user) => ({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  }))
}
