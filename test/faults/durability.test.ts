import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { call, startServer, type TestServer } from '../support/server.js'

const leftOut = spawnSync('strace', ['-V']).status !== 0 && process.env['CI'] !== 'true'

// Left out where there is no tracer, but never in silence, and never where the whole suite is promised.
if (leftOut) console.warn('Skipped: no strace')

const WRITES = 40

let server: TestServer
let directory: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-trace-'))
  server = await startServer({ dataDir: join(directory, 'data') })
})

afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** Traces the system calls of the server while `work` runs; gives the lines in the order that the calls returned. */
async function traced(work: () => Promise<void>): Promise<string[]> {
  const file = join(directory, 'trace')
  const calls = 'trace=fdatasync,fsync,msync,read,recvfrom,write,writev,sendto,sendmsg'
  const strace = spawn('strace', [
    '-f',
    '-qq',
    '-s',
    '16',
    '-o',
    file,
    '-e',
    calls,
    '-p',
    String(server.process.pid),
  ])
  const ended = once(strace, 'exit')
  // It is attached once the server's own system calls show up, and those of a request always do.
  let attached = false
  while (!attached) {
    await call(server, 'GET /healthz')
    attached = readIfThere(file).includes('HTTP/1.1 200')
    if (strace.exitCode !== null) throw new Error(`The tracer ended with ${strace.exitCode}`)
  }
  await work()
  strace.kill('SIGINT')
  await ended
  return readFileSync(file, 'utf8').trimEnd().split('\n')
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

describe.skipIf(leftOut)('the order of an answer and its fsync', () => {
  it('is that the answer leaves only after the commit is on disk', async () => {
    await call(server, 'POST /v1/collections/traced/records', { body: { data: { n: -1 } } })
    const lines = await traced(async () => {
      for (let n = 0; n < WRITES; n++) {
        const { status } = await call(server, 'POST /v1/collections/traced/records', {
          body: { data: { n } },
        })
        expect(status).toBe(201)
      }
    })
    let requests = 0
    let answers = 0
    let syncs = 0
    for (const line of lines) {
      if (line.includes('"POST /v1/collec')) {
        requests++
        syncs = 0
      }
      // A call that another thread interrupts is told in two lines: only the second says that it returned.
      else if (/(fdatasync|fsync|msync)(\(| resumed).* = 0$/.test(line)) syncs++
      else if (line.includes('"HTTP/1.1 201 Cre')) {
        expect(syncs, `no fsync returned before answer ${answers}`).toBeGreaterThan(0)
        answers++
      }
    }
    expect({ requests, answers }).toEqual({ requests: WRITES, answers: WRITES })
  })
})
