import { readFileSync, readdirSync } from 'node:fs'
import { configDefaults, defineConfig } from 'vitest/config'
import { builtProgram } from './test/support/built-program.js'
import { FirstFilesFirst } from './test/support/first-files.js'

/*
 * The tiers of tests (CONTRIBUTING.md, Tests): x.test.ts runs in `npm test`, x.slow.test.ts also in CI,
 * x.campaign.test.ts only on request. The first line of a file may name more projects:
 * `// @run on node:http`.
 */
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((path) => `test/${path.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.test.ts'))
const firstLine = (path: string) => readFileSync(path, 'utf8').split('\n', 1)[0] ?? ''
const filesFor = (need: string) => files.filter((path) => firstLine(path).includes(`@run ${need}`))
const all = (ending: string) => files.filter((path) => path.endsWith(ending))

/**
 * Files run in parallel in long-lived processes, which load each import only once and so need a quarter of
 * the time.
 */
const pooled = {
  maxWorkers: 3,
  isolate: false,
  setupFiles: ['test/support/restore-globals.ts'],
}
const quick = all('.test.ts').filter((path) => !/\.(slow|campaign)\.test\.ts$/.test(path))
const overHttp = quick.filter((path) => /^test\/(routes|client)\//.test(path))
/** Starts a server in a third less time, where the number of shards does not matter. */
const oneShard = { SERVICE_SHARDS: '1' }
const standby = { STRANDFAST_THROUGH_STANDBY: '1', ...oneShard }
const projects = [
  { name: 'quick', include: quick, testTimeout: 60_000, ...pooled },
  { name: 'slow', include: all('.slow.test.ts'), ...pooled },
  {
    name: 'on node:http',
    include: filesFor('on node:http'),
    env: { SERVICE_HTTP_ENGINE: 'node', ...oneShard },
    ...pooled,
  },
  {
    name: 'by two fronts',
    include: [...overHttp, ...filesFor('by two fronts')],
    env: { SERVICE_FRONTS: '2' },
    ...pooled,
  },
  { name: 'through a standby', include: filesFor('through a standby'), env: standby, ...pooled },
  {
    name: 'on the built program',
    include: filesFor('on the built program'),
    server: { deps: { inline: [/dist\/program/] } },
    ...pooled,
  },
  { name: 'campaign', include: all('.campaign.test.ts'), ...pooled },
]

export default defineConfig({
  test: {
    exclude: configDefaults.exclude,
    // CommonJS packages are imported like in Node.
    deps: { interopDefault: false },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    // Failures are printed completely.
    chaiConfig: { truncateThreshold: 0 },
    sequence: { sequencer: FirstFilesFirst },
    globalSetup: ['test/support/server/standby-database.ts'],
    projects: projects
      .filter(({ include }) => include.length > 0)
      .map((test) => ({
        extends: true as const,
        plugins: test.name === 'on the built program' ? [builtProgram()] : [],
        test,
      })),
  },
})
