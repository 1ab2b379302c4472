import { readFileSync, readdirSync } from 'node:fs'
import { configDefaults, defineConfig } from 'vitest/config'
import { builtProgram } from './test/support/built-program.js'
import { FirstFilesFirst } from './test/support/first-files.js'

/*
 * The tiers of tests (CONTRIBUTING.md, Tests): x.test.ts runs in `npm test`, x.slow.test.ts in CI as well, x.campaign.test.ts
 * when it is asked for. A file that needs more says so in its first line: `// @run on node:http`.
 */
const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .map((path) => `test/${path.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('.test.ts'))
const firstLine = (path: string) => readFileSync(path, 'utf8').split('\n', 1)[0] ?? ''
const saying = (need: string) => files.filter((path) => firstLine(path).includes(`@run ${need}`))
const all = (ending: string) => files.filter((path) => path.endsWith(ending))

/** Several files at once in processes that stay: what they import is loaded once a process, a quarter of the time. */
const together = {
  maxWorkers: 3,
  isolate: false,
  setupFiles: ['test/support/restore-globals.ts'],
}
const quick = all('.test.ts').filter((path) => !/\.(slow|campaign)\.test\.ts$/.test(path))
const outside = quick.filter((path) => /^test\/(routes|client)\//.test(path))
const standby = { STRANDFAST_THROUGH_STANDBY: '1' }
const projects = [
  { name: 'quick', include: quick, testTimeout: 60_000, ...together },
  { name: 'slow', include: all('.slow.test.ts'), ...together },
  {
    name: 'on node:http',
    include: saying('on node:http'),
    env: { SERVICE_HTTP_ENGINE: 'node' },
    ...together,
  },
  {
    name: 'by two fronts',
    include: [...outside, ...saying('by two fronts')],
    env: { SERVICE_FRONTS: '2' },
    ...together,
  },
  { name: 'through a standby', include: saying('through a standby'), env: standby, ...together },
  {
    name: 'on the built program',
    include: saying('on the built program'),
    server: { deps: { inline: [/dist\/program/] } },
    ...together,
  },
  { name: 'campaign', include: all('.campaign.test.ts'), ...together },
]

export default defineConfig({
  test: {
    exclude: configDefaults.exclude,
    // CommonJS packages are imported as Node imports them.
    deps: { interopDefault: false },
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
    // A failure is printed whole.
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
