import { configDefaults, defineConfig } from 'vitest/config'
import { leftToCi } from './test/support/ci-only.js'
import { LongestFirst } from './test/support/longest-first.js'
import { seedOfRun } from './test/support/run-seed.js'

export default defineConfig({
  test: {
    exclude: [...configDefaults.exclude, ...leftToCi(process.env, process.argv.slice(2))],
    env: { STRANDFAST_SEED: String(seedOfRun(process.env)) },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/print-seed.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: ['test/attacks/**'],
          // Two cores: each test file that starts a server starts several threads of its own.
          maxWorkers: 2,
          // What they import is loaded once a process, not once a file: a quarter of the time.
          isolate: false,
          setupFiles: ['test/support/restore-globals.ts'],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'attacks',
          include: ['test/attacks/*.test.ts'],
          // They count processor time, of which work takes more where another thread has the other half of its core.
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
