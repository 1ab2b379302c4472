import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { backUp } from '../support/server/backup.js'
import { copyData } from '../support/server/copied-data.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

let directory: string
let server: TestServer

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-control-'))
  server = await startServer({ dataDir: join(directory, 'data'), env: { SERVICE_SHARDS: '2' } })
})

afterAll(async () => {
  await server?.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** The answer of the control socket to some bytes, until it closes the connection. */
async function answerTo(text: string): Promise<string> {
  const socket = connect(join(server.dataDir, 'control.sock'))
  let answer = ''
  socket.on('data', (bytes) => (answer += String(bytes)))
  // The server closes the connection if a request is too long.
  socket.on('error', () => {})
  socket.write(text)
  await new Promise((resolve) => socket.once('close', resolve))
  return answer
}

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

describe('the control socket', { timeout: 180_000 }, () => {
  it('can be used by its owner only', () => {
    expect(statSync(join(server.dataDir, 'control.sock')).mode & 0o077).toBe(0)
  })

  it('refuses malformed requests, and a copy of another number of shards', async () => {
    const one = join(directory, 'one')
    mkdirSync(one)
    for (const request of ['nonsense', '{}', JSON.stringify({ copy_to: [one] })]) {
      expect(JSON.parse(await answerTo(`${request}\n`))).toEqual({
        failed: expect.stringContaining('does not know this request'),
      })
    }
    expect(await answerTo('x'.repeat(1_000_000))).toBe('')
  })

  it('reports why it cannot copy, and the server continues', async () => {
    const request = JSON.stringify({ copy_to: ['/nowhere/0', '/nowhere/1'] })
    const lines = (await answerTo(`${request}\n`)).trimEnd().split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ failed: expect.stringContaining('/nowhere/0') })
    expect(existsSync('/nowhere')).toBe(false)
    const written = await call(server, 'POST /v1/collections/c/records', { body: { data: { n: 1 } } })
    expect(written.status).toBe(201)
    expect((await backUp(server.dataDir, join(directory, 'after'))).code).toBe(0)
  })

  it('aborts a copy whose directories are removed, and the server continues', async () => {
    // Regression: a timer that read the free space for the copy ended the process.
    const raw = `${JSON.stringify({ text: 'x'.repeat(400) })}\n`.repeat(60_000)
    const headers = { 'content-type': 'application/x-ndjson' }
    await call(server, 'POST /v1/ingest/big?signing=group', { raw, headers })
    const answers: string[] = []
    for (let round = 0; round < 4; round++) {
      const copy = join(directory, `removed-${round}`)
      const to = [0, 1].map((shard) => join(copy, String(shard)))
      for (const path of to) mkdirSync(path, { recursive: true })
      const answered = answerTo(`${JSON.stringify({ copy_to: to })}\n`)
      // In the middle of a store: removing a directory while LMDB opens a file in it can end the process
      // (docs/upstream/lmdb-failed-open.md), so the command waits for the server before it removes one.
      while (!to.some((path) => bytesOf(join(path, 'data.mdb')) > 1_000_000)) await immediate()
      rmSync(copy, { recursive: true })
      answers.push((await answered).trimEnd().split('\n').at(-1) ?? '')
      expect((await call(server, 'GET /readyz', { key: null })).status).toBe(200)
    }
    expect(answers.join('\n')).toContain('free space cannot be read')
    expect(server.stderr()).toBe('')
  })

  it('closes the connection of an interrupted copy only after all its files are closed', async () => {
    const isOpen = (path: string) =>
      readdirSync(`/proc/${server.process.pid}/fd`).some((fd) => targetOf(fd).startsWith(path))
    const targetOf = (fd: string) => {
      try {
        return readlinkSync(`/proc/${server.process.pid}/fd/${fd}`)
      } catch {
        // The descriptor was closed after it was listed.
        return ''
      }
    }
    let wasOpen = 0
    for (let round = 0; round < 12; round++) {
      const copy = join(directory, `aborted-${round}`)
      const to = [0, 1].map((shard) => join(copy, String(shard)))
      for (const path of to) mkdirSync(path, { recursive: true })
      const socket = connect({ path: join(server.dataDir, 'control.sock'), allowHalfOpen: true })
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.resume()
      socket.write(`${JSON.stringify({ copy_to: to })}\n`)
      // LMDB opens its lock file first, so this is while the first or the second store is being opened.
      await eventually(() => existsSync(join(copy, String(round % 2), 'lock.mdb')))
      if (isOpen(copy)) wasOpen++
      socket.end()
      await closed
      expect(isOpen(copy)).toBe(false)
      rmSync(copy, { recursive: true })
      expect((await call(server, 'GET /readyz', { key: null })).status).toBe(200)
    }
    expect(wasOpen).toBeGreaterThan(0)
  })

  it('does not keep a server from stopping while a client holds a connection open', async () => {
    const socket = connect(join(server.dataDir, 'control.sock'))
    socket.on('error', () => {})
    await new Promise((resolve) => socket.once('connect', resolve))
    await server.halt()
    server = await startServer({ dataDir: server.dataDir })
  })

  it('is removed when the server stops, and replaced after a kill', async () => {
    const { dataDir } = server
    await server.halt()
    expect(existsSync(join(dataDir, 'control.sock'))).toBe(false)
    server = await startServer({ dataDir })
    await server.halt('SIGKILL')
    expect((await backUp(dataDir, join(directory, 'of-killed'))).code).toBe(0)
    server = await startServer({ dataDir })
    expect((await backUp(dataDir, join(directory, 'of-running'))).code).toBe(0)
  })

  it('is left by a killed server, whose directory can be copied all the same', async () => {
    const { dataDir } = server
    await server.halt('SIGKILL')
    const whole = join(directory, 'whole')
    execFileSync('cp', ['-a', dataDir, whole])
    expect(existsSync(join(whole, 'control.sock'))).toBe(true)
    const files = join(directory, 'files')
    copyData(dataDir, files)
    expect((await backUp(whole, join(directory, 'of-whole'))).code).toBe(0)
    for (const copy of [whole, files, dataDir]) {
      server = await startServer({ dataDir: copy })
      expect((await call(server, 'GET /readyz')).status).toBe(200)
      if (copy !== dataDir) await server.halt()
    }
  })
})
