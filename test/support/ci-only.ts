import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Folders of tests that take long, or load the machine for longer than a moment: CI runs all of them, and `npm test` of
 * each only what is named here, one of each kind. `npm run test:faults` runs all of test/faults; a file that is named on
 * the command line runs in any form.
 */
export const shortForms: Readonly<Record<string, readonly string[]>> = {
  attacks: ['audit-text', 'queries', 'stolen-token'],
  console: ['first', 'proof'],
  e2e: ['deployment', 'readme', 'restore-tokens'],
  faults: ['auth-single-use', 'crash', 'durability', 'power-loss', 'stop'],
}

/** Files of other folders that take long, and what `npm test` runs of their kind. */
export const ciOnly: Readonly<Record<string, string>> = {
  'client/server-trouble': 'client/http',
  'cluster/client': 'client/addresses, cluster/rounds',
  'cluster/copies': 'unit/dispatch/places',
  'cluster/check': 'cluster/register',
  'cluster/database-at-start': 'cluster/rounds',
  'cluster/failover': 'cluster/register',
  'cluster/hand-over': 'cluster/rounds',
  'cluster/register-chaos': 'cluster/register',
  'cluster/membership': 'cluster/nodes, unit/dispatch/membership',
  'cluster/node': 'cluster/rounds, cluster/register',
  'cluster/node-database': 'cluster/rounds',
  'cluster/node-full-disk': 'cluster/rounds',
  'cluster/node-trouble': 'cluster/rounds',
  'cluster/planted-hand-over': 'cluster/rounds',
  'cluster/planted-nodes': 'cluster/rounds',
  'cluster/push-cut': 'cluster/rounds',
  'cluster/links': 'threads/fronts',
  'cluster/status': 'cluster/rounds',
  'cluster/silent-network': 'unit/store/log/log-line',
  'cluster/take-over': 'cluster/rounds',
  'house/gate': 'house/lint-rules',
  'proof/line-length': 'proof/differential, client/verify-export',
  'routes/organisms/mirror': 'routes/organisms, threads/organisms',
  'routes/strand-import/unfinished': 'routes/strand-import',
  'routes/strand-import/zones': 'routes/strand-import',
  'threads/auth-strangers': 'routes/auth/register, routes/auth/login',
  'threads/ending-pools': 'threads/thread-pool',
  'threads/erasure': 'routes/mutations, faults/power-loss',
  'threads/proposals': 'routes/proposals',
  'threads/reader-pool': 'routes/strand-export, threads/thread-watch',
  'threads/reshard': 'threads/store-check',
  'threads/server-log': 'routes/server-log',
  'threads/strand-import': 'routes/strand-import',
  'threads/store-copy': 'e2e/restore-tokens',
  'threads/shard-death': 'threads/shards, threads/thread-watch',
  'threads/turns': 'threads/shard',
  'threads/verify': 'proof/differential, unit/strand/verify-export',
  'unit/cli/import': 'routes/strand-import, unit/cli/commands',
  'unit/cli/bench': 'unit/bench/bench',
  'unit/cli/hostile-server': 'client/http',
}

/** Files that only the full form of the fault tests runs, as what they need takes minutes, or is mostly missing. */
export const fullOnly: readonly string[] = ['cluster/patroni']

/**
 * Files whose tests CI runs on both HTTP libraries, as they are about what a library does: `npm test` runs the first
 * on node:http. All of test/routes runs there too, on Node 24 (`.ci/run`).
 */
const aboutHttp = [
  'routes/records',
  'e2e/head',
  'attacks/smuggling',
  'attacks/tiny-chunks',
  'e2e/answer-headers',
  'faults/chunked-bodies',
  'faults/ended-downloads',
  'faults/ended-uploads',
  'faults/idle-connections',
  'faults/malformed-http',
  'faults/slow-clients',
  'faults/slow-streams',
  'faults/stop',
]

/** Files that CI also runs through a node that stands by, with another one behind it: no test of them starts a server again. */
const throughStandby = [
  'routes/stream',
  'routes/strand-export',
  'routes/strand-import/streams',
  'routes/ingest/arrays',
  'routes/policies/reads',
  'routes/policies/writes',
  'routes/organisms/isolation',
  'routes/proposals',
]

/** Attacks that measure neither processor time nor stalls, and so run beside others; new ones are held to be measured. */
export const unmeasuredAttacks = ['audit-text', 'lockout', 'pre-hijack', 'smuggling', 'stolen-token']

/** Paths of the files that this run has on node:http too. */
export const onNodeHttp = (isLong(process.env) ? aboutHttp : aboutHttp.slice(0, 1)).map(
  (name) => `test/${name}.test.ts`,
)

/** Paths of the files that this run has through a standby too. */
export const onStandby = (isLong(process.env) ? throughStandby : []).map((name) => `test/${name}.test.ts`)

/** Whether a run is one of CI or of a long form of the fault tests. */
export function isLong(env: Readonly<Record<string, string | undefined>>): boolean {
  return env['CI'] === 'true' || (env['STRANDFAST_FAULTS'] ?? 'short') !== 'short'
}

/**
 * How long a test may take that says nothing else, in milliseconds. The long forms keep more than the machine has busy.
 */
export function patienceMs(env: Readonly<Record<string, string | undefined>>): number {
  return isLong(env) ? 240_000 : 60_000
}

/** The files that a run leaves out: next to none in the long forms, and none where files are named. */
export function leftToCi(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): string[] {
  const isNamed = argv.some((argument) => argument.endsWith('.test.ts'))
  if (isNamed || env['STRANDFAST_FAULTS'] === 'full') return []
  const ofFull = fullOnly.map((name) => `test/${name}.test.ts`)
  if (isLong(env)) return ofFull
  const folders = Object.entries(shortForms).flatMap(([folder, short]) => {
    const runs = new Set(short.map((name) => `${name}.test.ts`))
    const all = readdirSync(join(tests, folder)).filter((name) => name.endsWith('.test.ts'))
    return all.filter((name) => !runs.has(name)).map((name) => `test/${folder}/${name}`)
  })
  return [...folders, ...Object.keys(ciOnly).map((name) => `test/${name}.test.ts`), ...ofFull]
}

const tests = join(import.meta.dirname, '..')
