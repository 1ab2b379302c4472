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
 * Logins with right passwords, turn by turn over the users, so that clients which go through them together are each
 * another user.
 * @param {{email: string, password: string}[]} users
 * @returns {import('./records.mjs').LoadRequest[]}
 */
export function loginRequests(users) {
  return users.map((user) => ({
    method: 'POST',
    path: '/v1/auth/login',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(user),
  }))
}
