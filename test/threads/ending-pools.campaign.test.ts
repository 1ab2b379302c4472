import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('threads that are ended while they start do the process no harm', async () => {
  const script = fileURLToPath(new URL('../support/server/ending-pools.mjs', import.meta.url))
  // Where threads are ended in the middle of a start, Node ends the process in each such run.
  const { stdout } = await promisify(execFile)(process.execPath, [script, '40'])
  expect(stdout).toBe('fine\n')
})
