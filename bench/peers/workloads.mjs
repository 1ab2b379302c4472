/**
 * The same work for every contender.
 * @typedef {object} Workload
 * @property {string} id
 * @property {'writes' | 'bulk' | 'sign-in'} kind
 * @property {string} title
 * @property {string} unit
 * @property {number} [connections] parallel clients, if the workload prescribes them
 * @property {number} [secondsMin] of one load, even if other loads are shorter
 * @property {Target[]} [targets] ratios that Strandfast has to reach
 */

/**
 * @typedef {object} Target
 * @property {string} ours name of the contender
 * @property {string} peer name of the contender that it is compared with
 * @property {number} ratio the minimum of ours divided by the peer's
 */

/** @type {Workload[]} */
export const workloads = [
  writes(1, 'Single durable writes, 1 client', [{ ours: 'Strandfast', peer: 'PostgreSQL', ratio: 0.6 }]),
  writes(16, 'Single durable writes, 16 clients', [
    { ours: 'Strandfast', peer: 'node:http and better-sqlite3', ratio: 0.7 },
  ]),
  writes(64, 'Single durable writes, 64 clients', [
    { ours: 'Strandfast', peer: 'uWebSockets.js, PostgreSQL and sodium', ratio: 3 },
    { ours: 'Strandfast', peer: 'uWebSockets.js, better-sqlite3 and sodium', ratio: 1 },
    { ours: 'Strandfast', peer: 'PostgreSQL', ratio: 1.1 },
  ]),
  writes(512, 'Single durable writes, 512 clients', [
    { ours: 'Strandfast', peer: 'uWebSockets.js, PostgreSQL and sodium', ratio: 5 },
    { ours: 'Strandfast', peer: 'PostgreSQL', ratio: 2 },
  ]),
  {
    id: 'bulk',
    kind: 'bulk',
    title: 'Bulk writes',
    unit: 'records/s',
    targets: [
      ingestOfGroups('PostgreSQL, INSERT of 1,000 rows, 1 connection', 1),
      ingestOfGroups('PostgreSQL, COPY, 1 connection', 0.9),
      ingestOfGroups('hypercore, 1,000 blocks an append', 1),
    ],
  },
  {
    id: 'sign-in',
    kind: 'sign-in',
    title: 'Sign-in by password, 8 clients',
    unit: 'sign-ins/s',
    // Enough to keep all cores busy. If hashes share Node's four threads with the work that follows them,
    // each sign-in queues there several times behind all others, and all are answered together after seconds:
    // with 32 clients no answer arrived in the first ten.
    connections: 8,
    secondsMin: 6,
  },
]

function ingestOfGroups(peer, ratio) {
  return { ours: 'Strandfast, NDJSON ingest, a signature a group', peer, ratio }
}

function writes(connections, title, targets = []) {
  return { id: `writes-${connections}`, kind: 'writes', title, unit: 'records/s', connections, targets }
}
