import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startServer } from '../support/server/server.js'

/** Regression test: a process that exited while its threads had stores open hung once in thirty starts. */
const TRIES = 3
const CONCURRENT = 5

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-starts-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Starts servers that must fail, several at the same time. @returns exit code and last line of each */
async function starts(env: Record<string, string>): Promise<{ code: number | null; last: string }[]> {
  const ended: { code: number | null; last: string }[] = []
  let next = 0
  const lane = async () => {
    while (next < TRIES) ended.push(await fail({ SERVICE_DATA_DIR: join(directory, `${next++}`), ...env }))
  }
  await Promise.all(Array.from({ length: CONCURRENT }, lane))
  return ended
}

async function fail(env: Record<string, string>): Promise<{ code: number | null; last: string }> {
  const environment = {
    PATH: process.env['PATH'],
    SERVICE_PORT: '0',
    SERVICE_SHARDS: '2',
    SERVICE_MIN_FREE_BYTES: '0',
    SERVICE_LOG_LEVEL: 'warn',
    ...env,
  }
  const child = spawn(process.execPath, [program, 'serve'], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (bytes: Buffer) => (output += bytes.toString()))
  // The time limit of the test ends a start that hangs.
  await once(child, 'close')
  return { code: child.exitCode, last: output.trimEnd().split('\n').at(-1) ?? '' }
}

/** The expected result of all tries: an exit code and a last line. */
function all(code: number, last: RegExp): object[] {
  return Array.from({ length: TRIES }, () => ({ code, last: expect.stringMatching(last) }))
}

describe('a start that fails', () => {
  it('always ends with its code when the port is in use', { timeout: 400_000 }, async () => {
    const other: Server = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const ended = await starts({ SERVICE_PORT: String(port) })
    other.close()
    expect(ended).toEqual(all(1, /EADDRINUSE/))
  })

  it(
    'always ends with its code when the key of the certificate is invalid',
    { timeout: 400_000 },
    async () => {
      const file = join(directory, 'junk.pem')
      writeFileSync(file, 'junk')
      const ended = await starts({ SERVICE_TLS_CERT_FILE: file, SERVICE_TLS_KEY_FILE: file })
      expect(ended).toEqual(all(78, /^SERVICE_TLS_KEY_FILE: given .* a file that is not PEM/))
    },
  )

  it('always ends with its code when a store cannot be opened', { timeout: 400_000 }, async () => {
    const dataDir = join(directory, 'damaged')
    await (await startServer({ dataDir, env: { SERVICE_SHARDS: '2' } })).halt()
    writeFileSync(join(dataDir, 'shard-1/data.mdb'), 'junk')
    const ended: object[] = []
    for (let tries = 0; tries < TRIES; tries++) ended.push(await fail({ SERVICE_DATA_DIR: dataDir }))
    expect(ended).toEqual(all(1, /^The server failed: .* is damaged/))
  })

  it('always ends with its code when the data directory is in use', { timeout: 400_000 }, async () => {
    const server = await startServer()
    const ended = await starts({ SERVICE_DATA_DIR: server.dataDir })
    await server.stop()
    expect(ended).toEqual(all(78, /is in use by process \d+/))
  })

  it('always ends with its code when the license public key is invalid', { timeout: 400_000 }, async () => {
    const ended = await starts({ SERVICE_AUTH_ENABLED: 'true', SERVICE_LICENSE_PUBLIC_KEY: 'junk' })
    expect(ended.map(({ code }) => code)).toEqual(Array.from({ length: TRIES }, () => 78))
  })
})
