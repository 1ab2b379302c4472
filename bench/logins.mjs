import { call } from './server.mjs'

/** Parallel registrations: fewer than the passwords that may wait for a thread. */
const CONCURRENT_REGISTRATIONS = 32
/** Not on any list of common passwords. */
const PASSWORD = 'seven quiet otters under the bridge'

/**
 * Users of a load. Each one is also the body that registers it and signs it in.
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
 * @param {string} url of the route that registers a user
 * @param {object[]} users the bodies of the registrations
 * @param {number} [status] of a successful answer
 */
export async function registerAll(url, users, status = 201) {
  for (let from = 0; from < users.length; from += CONCURRENT_REGISTRATIONS) {
    const some = users.slice(from, from + CONCURRENT_REGISTRATIONS)
    await Promise.all(some.map((body) => call(url, { body, status })))
  }
}

/**
 * Logins with right passwords, one user after another, so that parallel clients log in as different users.
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
