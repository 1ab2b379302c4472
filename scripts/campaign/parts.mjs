/**
 * The parts of a campaign: tests by prefixes of their paths in `test`. `files` run in each pass with a new
 * seed; `once` only in the first pass, because they use no seed. A part is complete at the numbers of
 * `until`, by the names that tests count (test/support/faults/rounds.ts); `passes` counts passes. `rounds`
 * replaces the number of rounds of a pass, where starting what they run on takes longer than a round.
 * @typedef {{title: string, files: string[], once?: string[], rounds?: number, until: Record<string, number>}} Part
 * @type {Record<string, Part>}
 */
export const parts = {
  crash: {
    title:
      'Servers, first starts, backups, restores and moves to other shards are killed under load; threads hang and die',
    files: ['faults/crash.', 'faults/reshard-crash.'],
    once: [
      'faults/auth-crash.',
      'faults/graph-crash.',
      'faults/import-crash.',
      'faults/organism-crash.',
      'faults/hung-threads.',
      'threads/shard-death.',
      'threads/ending-pools.',
      'e2e/reshard.',
      'e2e/restore.',
    ],
    until: { kills: 500 },
  },
  power: {
    title: 'The power is lost under load; unsynced sectors are lost, torn and reordered',
    files: ['faults/power-loss.', 'faults/log-losses.', 'faults/restore-steps.'],
    until: { losses: 200 },
  },
  calls: {
    title: 'Each write, sync and open of a server fails once; bits of its files flip',
    files: ['faults/failing-calls.', 'faults/flipped-bits.'],
    once: ['faults/failing-starts.', 'faults/backup-space.', 'faults/full-disk.'],
    until: { passes: 397 },
  },
  cluster: {
    title:
      'Nodes, links and databases of a cluster are killed, stopped, cut off and promoted under load; rows of its tables are changed',
    files: ['cluster/rounds.', 'cluster/mistakes.', 'cluster/changed-tables.', 'cluster/register-chaos.'],
    once: ['cluster/'],
    rounds: 50,
    until: { rounds: 1_100, mistakes: 200, changedDatabases: 1_100 },
  },
  attacks: {
    title: 'Hostile requests, compared with a control, and times of answers to unknown e-mails',
    files: ['attacks/', 'faults/auth-timing.'],
    until: { passes: 1 },
  },
  model: {
    title: 'Random calls to a server and to a plain model of it',
    files: ['model/'],
    until: { modelRuns: 16 },
  },
  fuzz: {
    title: 'Random requests, bodies, cursors, credentials, imports, exports and policies',
    files: [
      'faults/fuzz-',
      'console/policy-try.',
      'proof/differential.',
      'proof/lying-prover.',
      'threads/server-log.',
      'threads/verify.',
    ],
    until: { passes: 4 },
  },
  long: {
    title:
      'Packages and image as users install them, ten thousand streams, pages with much data, and other long tests',
    files: [
      'client/server-trouble.',
      'console/health.',
      'console/time.',
      'console/volume.',
      'e2e/answer-headers.',
      'e2e/backup-load.',
      'e2e/docs-page.',
      'e2e/image.',
      'e2e/load-testing.',
      'e2e/openapi-types.',
      'e2e/otlp.',
      'e2e/packages.',
      'e2e/postgres-sink.',
      'e2e/server-log.',
      'e2e/sign-in-page.',
      'faults/auth-limits.',
      'faults/idle-connections.',
      'faults/slow-streams.',
      'threads/auth-anonymous.',
      'threads/store-copy.',
      'unit/bench/running.',
    ],
    until: { passes: 1 },
  },
  soak: {
    title: 'A steady load for a long time, also with a server that is killed again and again',
    files: ['faults/soak.'],
    until: { passes: 1 },
  },
}
