import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.js'
import { seedOfRun } from './test/support/run-seed.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    env: { STRANDFAST_SEED: String(seedOfRun(process.env)) },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: each test file that starts a server starts several threads of its own.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/print-seed.ts'],
  },
})
