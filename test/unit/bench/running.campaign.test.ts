import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startServer } from '../../support/server/server.js'

interface Ended {
  code: number
  stdout: string
  stderr: string
}

async function measure(...args: string[]): Promise<Ended> {
  try {
    const command = ['bench/running.mjs', '--generator', 'autocannon', '--seconds', '1', ...args]
    return { code: 0, ...(await promisify(execFile)(process.execPath, command)) }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && 'stdout' in error && 'stderr' in error)) throw error
    return { code: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) }
  }
}

it('measures a running server, also repeatedly, if its address is exempt from rate limits', async () => {
  const server = await startServer({
    env: { SERVICE_RATE_LIMIT_RPS: '100', SERVICE_RATE_LIMIT_EXEMPT: '10.0.0.0/8,127.0.0.0/8' },
  })
  const runs = [
    await measure('--url', server.url, '--api-key', server.rootKey),
    await measure('--url', server.url, '--api-key', server.rootKey),
  ]
  await server.stop()
  for (const { code, stdout, stderr } of runs) {
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^single durable writes, 64 connections +[1-9][\d,]* records\/s +p50 [\d.]+ ms/m)
    expect(stdout).toMatch(/^NDJSON ingest, 8 uploads of 250 lines +[1-9][\d,]* records\/s/m)
    expect(stdout).toMatch(/^get by hash, 64 connections +[1-9][\d,]* reads\/s/m)
  }
})

it('explains a rate limit, a refused key and a missing server', async () => {
  const server = await startServer({ env: { SERVICE_RATE_LIMIT_RPS: '100' } })
  const limited = await measure('--url', server.url, '--api-key', server.rootKey)
  const refused = await measure('--url', server.url, '--api-key', 'x'.repeat(32))
  await server.stop()
  const nowhere = await measure('--url', server.url, '--api-key', server.rootKey)
  const failure = (stderr: RegExp) => ({ code: 1, stdout: '', stderr: expect.stringMatching(stderr) })
  expect(limited).toEqual(
    failure(/^Not measured: The server limits the rate of this address .*SERVICE_RATE_LIMIT_EXEMPT/),
  )
  expect(refused).toEqual(failure(/^Not measured: The server answers 401: /))
  expect(nowhere).toEqual(failure(/^Not measured: fetch failed: /))
  expect(await measure('--url', server.url)).toEqual(
    failure(/^Not measured: Expected --url URL --api-key KEY/),
  )
})
