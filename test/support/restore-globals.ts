import { afterAll, vi } from 'vitest'

// Files share a process, and with it what a test has put in the place of globals and methods.
afterAll(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})
