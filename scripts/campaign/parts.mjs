/**
 * What a campaign can run: the tests of a part, by beginnings of their paths below `test`, and the numbers at which it is
 * complete, by the names under which tests count (test/support/faults/rounds.ts). `passes` counts passes.
 * @type {Record<string, {title: string, files: string[], until: Record<string, number>}>}
 */
export const parts = {
  crash: {
    title: 'Servers, first starts, backups, restores and moves to other shards are killed under load',
    files: [
      'faults/crash.',
      'faults/reshard-crash.',
      'faults/auth-crash.',
      'faults/graph-crash.',
      'faults/import-crash.',
      'faults/organism-crash.',
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
    files: ['faults/failing-calls.', 'faults/failing-starts.', 'faults/flipped-bits.'],
    until: { passes: 41 },
  },
  cluster: {
    title: 'Nodes, links and databases of a cluster are killed, stopped, cut off and promoted under load',
    files: [
      'cluster/rounds.',
      'cluster/register-chaos.',
      'cluster/membership.',
      'cluster/failover.',
      'cluster/planted-nodes.campaign.',
      'cluster/node-database.',
      'cluster/node-trouble.',
      'cluster/push-cut.',
      'cluster/patroni.',
    ],
    until: { rounds: 1_100 },
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
    title: 'Random requests, bodies, cursors, credentials, imports and policies',
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
    title: 'The image of the Dockerfile, backups under load, a console with much data',
    files: ['e2e/image.', 'e2e/backup-load.', 'console/volume.'],
    until: { passes: 1 },
  },
  soak: {
    title: 'A steady load for a long time, also with a server that is killed again and again',
    files: ['faults/soak.'],
    until: { passes: 1 },
  },
}
