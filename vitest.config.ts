import { configDefaults, defineConfig } from 'vitest/config'
import { leftToCi } from './test/support/ci-only.js'
import { LongestFirst } from './test/support/longest-first.js'
import { seedOfRun } from './test/support/run-seed.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...leftToCi(process.env, process.argv.slice(2))],
    env: { STRANDFAST_SEED: String(seedOfRun(process.env)) },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: each test file that starts a server starts several threads of its own.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/print-seed.ts'],
  },
})
