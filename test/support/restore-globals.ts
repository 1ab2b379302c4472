import { afterAll, vi } from 'vitest'

// Files share a process, including globals and methods that a test has replaced.
afterAll(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})
