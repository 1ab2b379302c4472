import { defineConfig } from 'vitest/config'
import { LongestFirst } from './test/support/longest-first.js'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: each test file that starts a server starts several threads of its own.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
})
