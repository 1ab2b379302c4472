import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { noOtherRuntime, runtime, testRuntimes } from '../../scripts/runtimes.mjs'
import { leftOut } from '../support/faults/rounds.js'
import { startServer } from '../support/server/server.js'

/*
 * The client on each runtime that the README promises. Browsers: test/e2e/client-browser.slow.test.ts.
 */

const session = join(import.meta.dirname, '../support/server/client-session.mjs')

/** Deno allows only the network: the client reads neither files nor the environment. */
const argsOf = { node: [], bun: ['run'], deno: ['run', '--quiet', '--no-prompt', '--allow-net=127.0.0.1'] }

// The first run on a machine downloads the runtimes.
const timeout = 240_000

describe.skipIf(leftOut(noOtherRuntime))('the client', { timeout }, () => {
  it.each(testRuntimes)('works on %s %s', async (name, version) => {
    const server = await startServer()
    try {
      const call = [...argsOf[name], session, server.url, server.rootKey]
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
