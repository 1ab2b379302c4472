/**
 * What is asked of every contender alike.
 * @typedef {object} Workload
 * @property {string} id
 * @property {'writes' | 'bulk' | 'sign-in'} kind
 * @property {string} title
 * @property {string} unit
 * @property {number} [connections] clients at once, where the workload prescribes them
 * @property {number} [secondsMin] of one load, however short the others are
 */

/** @type {Workload[]} */
export const workloads = [
  writes(1, 'Single durable writes, 1 client'),
  writes(64, 'Single durable writes, 64 clients'),
  writes(512, 'Single durable writes, 512 clients'),
  { id: 'bulk', kind: 'bulk', title: 'Many records at once', unit: 'records/s' },
  {
    id: 'sign-in',
    kind: 'sign-in',
    title: 'Sign-in by password, 32 clients',
    unit: 'sign-ins/s',
    connections: 32,
    // Some hash all that wait a little at a time, so that the first answers come with the last.
    secondsMin: 5,
  },
]

function writes(connections, title) {
  return { id: `writes-${connections}`, kind: 'writes', title, unit: 'records/s', connections }
}
