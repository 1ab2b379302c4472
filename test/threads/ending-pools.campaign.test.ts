import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('threads that are terminated while they start do not harm the process', async () => {
  const script = fileURLToPath(new URL('../support/server/ending-pools.mjs', import.meta.url))
  // If threads are terminated in the middle of a start, Node ends the process in every run.
  const { stdout } = await promisify(execFile)(process.execPath, [script, '40'])
  expect(stdout).toBe('fine\n')
})
