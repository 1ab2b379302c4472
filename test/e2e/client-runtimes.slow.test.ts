import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { nodeVersions, noOtherRuntime, runtime } from '../../scripts/runtimes.mjs'
import { leftOut } from '../support/faults/rounds.js'
import { startServer } from '../support/server/server.js'

/*
 * The client on each runtime that the README promises. Browsers: test/e2e/client-browser.slow.test.ts.
 */

const session = join(import.meta.dirname, '../support/server/client-session.mjs')

type Runtime = [name: 'node' | 'bun' | 'deno', version: string, args: string[]]

const runtimes: Runtime[] = [
  ...Object.values(nodeVersions).map((version): Runtime => ['node', version, []]),
  ['bun', '1.4.5', ['run']],
  // Only the network is allowed: the client reads neither files nor the environment.
  ['deno', '2.9.6', ['run', '--quiet', '--no-prompt', '--allow-net=127.0.0.1']],
]

// The first run on a machine downloads the runtimes.
const timeout = 240_000

describe.skipIf(leftOut(noOtherRuntime))('the client', { timeout }, () => {
  it.each(runtimes)('works on %s %s', async (name, version, args) => {
    const server = await startServer()
    try {
      const call = [...args, session, server.url, server.rootKey]
      const { stdout } = await promisify(execFile)(runtime(name, version), call, { timeout: 50_000 })
      expect(JSON.parse(stdout)).toEqual({
        read: { room: 'hall' },
        missing: true,
        streamed: ['hall', 'attic', 'cellar'],
        accepted: 1,
        verified: [true, 5],
        other: false,
      })
    } finally {
      await server.stop()
    }
  })
})
