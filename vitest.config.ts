import { configDefaults, defineConfig } from 'vitest/config'
import { leftToCi, onNodeHttp, onStandby, patienceMs, unmeasuredAttacks } from './test/support/ci-only.js'
import { LongestFirst } from './test/support/longest-first.js'
import { seedOfRun } from './test/support/run-seed.js'

const env = { STRANDFAST_SEED: String(seedOfRun(process.env)) }
/** The other one of the HTTP libraries (docs/adr/0037-two-http-engines.md). */
const nodeHttp = { ...env, SERVICE_HTTP_ENGINE: 'node' }
/** Attacks that are measured, by the processor time or the longest stall of the server; and what compares times. */
const measured = [`test/attacks/!(${unmeasuredAttacks.join('|')}).test.ts`, 'test/faults/auth-timing.test.ts']
const ofAttacks = (path: string) =>
  path.startsWith('test/attacks/') && !unmeasuredAttacks.some((name) => path.endsWith(`/${name}.test.ts`))

const together = {
  // Two cores: each test file that starts a server starts several threads of its own, and waits for it. Two at once leave a
  // fifth of the processor time unused.
  maxWorkers: 3,
  // What they import is loaded once a process, not once a file: a quarter of the time.
  isolate: false,
  setupFiles: ['test/support/restore-globals.ts'],
  sequence: { groupOrder: 0 },
}

/** They count processor time, of which work takes more where another thread has the other half of its core. */
const alone = { maxWorkers: 1, sequence: { groupOrder: 1 } }

const projects = [
  { name: 'tests', include: ['test/**/*.test.ts'], exclude: measured, ...together },
  { name: 'node:http', include: onNodeHttp.filter((path) => !ofAttacks(path)), env: nodeHttp, ...together },
  {
    name: 'through a standby',
    include: onStandby,
    env: { ...env, STRANDFAST_THROUGH_STANDBY: '1' },
    ...together,
  },
  { name: 'attacks', include: measured, ...alone },
  { name: 'attacks on node:http', include: onNodeHttp.filter(ofAttacks), env: nodeHttp, ...alone },
]

const patience = patienceMs(process.env)

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, ...leftToCi(process.env, process.argv.slice(2))],
    env,
    // CommonJS packages are imported as Node imports them.
    deps: { interopDefault: false },
    testTimeout: patience,
    hookTimeout: patience,
    expect: { poll: { timeout: patience } },
    // A message of CI tells what was found, not how many things.
    chaiConfig: { truncateThreshold: 0 },
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/print-seed.ts', 'test/support/server/standby-database.ts'],
    projects: projects
      .filter(({ include }) => include.length > 0)
      .map((test) => ({ extends: true as const, test })),
  },
})
