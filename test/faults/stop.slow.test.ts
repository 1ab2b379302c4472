// @run on node:http
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/server/free-port.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestAnswer, type TestServer } from '../support/server/server.js'

const TIMEOUT_SECS = 5

const builtProgram = join(import.meta.dirname, '../../dist/program/strandfast.js')

let directory: string
let dataDir: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-stop-'))
  dataDir = join(directory, 'data')
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

function start(): Promise<TestServer> {
  return startServer({ dataDir, env: { SERVICE_SHUTDOWN_TIMEOUT_SECS: String(TIMEOUT_SECS) } })
}

/** Writes records, one after another, until the server refuses them. @returns the successful answers */
async function writeUntilStopped(server: TestServer, writer: number): Promise<TestAnswer[]> {
  const answers: TestAnswer[] = []
  for (let n = 0; ; n++) {
    try {
      const path = 'POST /v1/collections/stopped/records'
      const answer = await call(server, path, { body: { data: { writer, n } } })
      if (answer.status !== 201) {
        expect({ status: answer.status, code: answer.body.code }).toEqual({
          status: 503,
          code: 'unavailable',
        })
        return answers
      }
      answers.push(answer)
    } catch {
      // The server does not listen any more.
      return answers
    }
  }
}

describe('SIGTERM under load', () => {
  it('ends streams with retry and the process with 0, and no acknowledged record is lost', async () => {
    const server = await start()
    await call(server, 'POST /v1/collections/stopped/records', { body: { data: {} } })
    const streams = await Promise.all([
      openStream(server, '/v1/agents/stopped/stream'),
      openStream(server, '/v1/stream'),
    ])
    for (const stream of streams) await stream.until(isCaughtUp)
    const writers = Array.from({ length: 32 }, (_none, writer) => writeUntilStopped(server, writer))
    await streams[0]?.until((events) => numbersOf(events).length > 200)
    const exitCode = server.halt()
    const answers = (await Promise.all(writers)).flat()
    for (const stream of streams) {
      await stream.ended
      expect(stream.text().endsWith('retry: 2000\n\n')).toBe(true)
    }
    expect(await exitCode).toBe(0)
    expect(answers.length).toBeGreaterThan(200)

    const again = await start()
    const exported = await call(again, 'GET /v1/strand/export?agent=stopped')
    const lines = exported.text.trimEnd().split('\n')
    expect(await verifyExport(lines)).toMatchObject({ ok: true })
    const { body } = await call(again, 'GET /v1/agents/stopped/status')
    expect(body.record_count).toBeGreaterThanOrEqual(answers.length + 1)
    for (const answer of answers.slice(-20)) {
      const { status } = await call(again, `GET /v1/agents/stopped/records/${answer.body.record_id}`)
      expect(status).toBe(200)
    }
    expect(await again.halt()).toBe(0)
  })

  it('lets a request complete whose body arrives in time', async () => {
    const server = await start()
    const body = JSON.stringify({ data: { late: true } })
    const connection = await RawConnection.open(server)
    connection.write(
      `POST /v1/collections/late/records HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 8)}`,
    )
    // Once another request is answered, the server has started to read this one.
    await call(server, 'GET /healthz')
    const exitCode = server.halt()
    await untilClosed(server)
    connection.write(body.slice(8))
    const { statuses } = await connection.until((answer) => answer.statuses.length === 1)
    expect(statuses).toEqual([201])
    expect(await exitCode).toBe(0)
  })

  it('does not wait beyond its timeout for a client that never finishes or one that never reads', async () => {
    const server = await start()
    await call(server, 'POST /v1/ingest/big', {
      raw: `${JSON.stringify({ pad: 'x'.repeat(1_000) })}\n`.repeat(20_000),
      headers: { 'content-type': 'application/x-ndjson' },
    })
    const credential = `Host: a\r\nAuthorization: Bearer ${testRootKey}\r\n`
    const unfinished = await RawConnection.open(server)
    unfinished.write(
      `POST /v1/collections/never/records HTTP/1.1\r\n${credential}Content-Length: 500\r\n\r\n{`,
    )
    const unread = await RawConnection.open(server)
    unread.socket.pause()
    unread.write(`GET /v1/strand/export?agent=big HTTP/1.1\r\n${credential}\r\n`)
    await call(server, 'GET /healthz')
    expect(await server.halt()).toBe(0)
    unfinished.destroy()
    unread.destroy()
    const again = await start()
    expect((await call(again, 'GET /v1/agents/never/status')).status).toBe(404)
    expect(await again.halt()).toBe(0)
  })
})

describe.skipIf(!existsSync('/dev/full'))('SIGHUP with standard output and standard error full', () => {
  it('stops the server normally, which has worked without its logs', async () => {
    const port = await freePort()
    const full = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [builtProgram, 'serve', '--port', String(port)], {
      env: {
        ...inherited,
        SERVICE_DATA_DIR: dataDir,
        SERVICE_LOG_LEVEL: 'trace',
        SERVICE_MIN_FREE_BYTES: '0',
      },
      stdio: ['ignore', full, full],
    })
    closeSync(full)
    const exited = once(child, 'exit')
    const url = `http://127.0.0.1:${port}`
    await eventually(() =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => child.exitCode !== null,
      ),
    )
    const server = { url, rootKey: readFileSync(join(dataDir, 'root.key'), 'utf8').trim() }
    const { status } = await call(server, 'POST /v1/collections/full/records', { body: { data: {} } })
    expect(status).toBe(201)
    child.kill('SIGHUP')
    expect(await exited).toEqual([0, null])
  })
})

/** Resolves when the server accepts no new connections. */
async function untilClosed(server: TestServer): Promise<void> {
  for (;;) {
    try {
      const connection = await RawConnection.open(server)
      connection.destroy()
    } catch {
      return
    }
  }
}
