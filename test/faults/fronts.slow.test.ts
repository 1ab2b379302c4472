import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { connectBoth, FrontConnection } from '../support/server/fronts.js'
import { startInProcess } from '../support/server/in-process-server.js'
import { call, startServer, type TestServer } from '../support/server/server.js'
import { captureWorkers } from '../support/server/worker-capture.js'

/* Failures with several fronts: of a front thread, of a shard thread, and of the whole process. */

let folder: string
let server: TestServer | undefined

afterEach(async () => {
  await server?.stop()
  server = undefined
})

/** Starts a server whose second front fails when the returned function is called. */
async function startFaulty(env: Record<string, string> = {}): Promise<(how: 'die' | 'hang') => void> {
  folder = mkdtempSync(join(tmpdir(), 'strandfast-'))
  const file = join(folder, 'fault')
  server = await startServer({
    env: { SERVICE_FRONTS: '2', STRANDFAST_FRONT_FAULT: file, ...env },
    nodeOptions: ['--import', new URL('../support/faults/front-fault.mjs', import.meta.url).href],
  })
  return (how) => writeFileSync(file, how)
}

/**
 * Writes numbers over a connection until it is closed, and adds those that were acknowledged to `answered`.
 */
async function writeUntilClosed(
  connection: FrontConnection,
  answered: number[],
  from: number,
): Promise<void> {
  for (let n = from; ; n += 2) {
    const answer = await connection
      .call('POST /v1/collections/kept/records', { body: { data: { n } } })
      .catch(() => undefined)
    if (answer?.status !== 201) return
    answered.push(n)
  }
}

/**
 * Opens connections, one after another, until the server ends, so that some are being passed to a front that
 * ends.
 */
async function connectUntilEnd({ url, process }: TestServer): Promise<void> {
  const port = Number(new URL(url).port)
  while (process.exitCode === null && process.signalCode === null) {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write('GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n')
    socket.setTimeout(100, () => socket.destroy())
    await Promise.race([once(socket, 'data'), once(socket, 'close')]).catch(() => undefined)
    socket.destroy()
  }
}

async function storedNumbers(at: TestServer): Promise<Set<number>> {
  const { text } = await call(at, 'GET /v1/strand/export?agent=kept')
  return new Set(Array.from(text.matchAll(/"body":"\{\\"n\\":(\d+)\}"/g), ([, n]) => Number(n)))
}

describe('a front thread that fails', () => {
  const killed = [null, 'SIGKILL']
  it.each([
    // A shard in the middle of a transaction cannot be ended, so the process may be killed.
    ['die', [[1, null], killed], {}],
    // A thread that hangs cannot be ended, and an exit would wait for it, so the process is killed.
    ['hang', [killed], { SERVICE_SHARD_SILENCE_SECS: '4' }],
  ] as const)(
    'ends the process when it is made to %s, and no acknowledged write is lost',
    async (how, ends, env) => {
      const fail = await startFaulty(env)
      if (server === undefined) throw new Error('Expected a server')
      const running = server
      const fronts = await connectBoth(server)
      const answered: number[] = []
      const writing = fronts.map((connection, n) => writeUntilClosed(connection, answered, n))
      while (answered.length < 100) await new Promise((resolve) => setImmediate(resolve))
      const exited = once(server.process, 'exit')
      const others = Array.from({ length: 8 }, () => connectUntilEnd(running))
      fail(how)
      expect(ends).toContainEqual(await exited)
      await Promise.all([...writing, ...others])
      for (const connection of fronts) connection.close()
      expect(server.stderr()).toContain('a front thread ended or hangs: the process exits')
      const { dataDir } = server
      server = await startServer({ dataDir, env: { SERVICE_FRONTS: '2' } })
      const kept = await storedNumbers(server)
      expect(answered.filter((n) => !kept.has(n))).toEqual([])
      rmSync(folder, { recursive: true })
    },
  )
})

describe('a kill', () => {
  it('loses no write that a front has acknowledged', async () => {
    server = await startServer({ env: { SERVICE_FRONTS: '2' } })
    for (let round = 0; round < 3; round++) {
      const fronts = await connectBoth(server)
      const answered: number[] = []
      const writing = fronts.map((connection, n) =>
        writeUntilClosed(connection, answered, round * 1_000_000 + n),
      )
      while (answered.length < 100) await new Promise((resolve) => setImmediate(resolve))
      await server.halt('SIGKILL')
      await Promise.all(writing)
      for (const connection of fronts) connection.close()
      server = await startServer({ dataDir: server.dataDir, env: { SERVICE_FRONTS: '2' } })
      const kept = await storedNumbers(server)
      expect(answered.filter((n) => !kept.has(n))).toEqual([])
    }
  })
})

describe('a shard thread that dies with two fronts', () => {
  it('is restarted for both: streams miss no record, and deleted keys are refused', async () => {
    const capture = captureWorkers()
    const inProcess = await startInProcess({ SERVICE_FRONTS: '2' })
    const fronts = await connectBoth(inProcess)
    const stream = await openStream(inProcess, '/v1/stream?since=0')
    const other = await openStream(inProcess, '/v1/stream?since=0')
    for (const one of [stream, other]) await one.until(isCaughtUp)
    const made = await fronts[0].call('POST /v1/admin/api-keys', {
      body: { name: 'k', scopes: ['records:read'] },
    })
    const writeSurely = async (n: number) => {
      for (;;) {
        const at = fronts[n % 2] ?? fronts[0]
        const { status } = await at.call('POST /v1/collections/numbers/records', {
          body: { data: { n } },
          headers: { 'idempotency-key': `write-${n}` },
        })
        if (status === 201) return
        expect(status).toBe(503)
      }
    }
    const total = 80
    for (let n = 0; n < total; n++) {
      if (n % 20 === 10) for (const shard of ['shard-0', 'shard-1']) capture.fail(capture.latest(shard))
      await writeSurely(n)
    }
    const expected = Array.from({ length: total }, (_none, n) => n)
    for (const one of [stream, other]) {
      const shown = () => numbersOf(one.events.filter(({ data }) => data.payload?.n !== undefined))
      await one.until(() => shown().length >= total)
      expect(shown()).toEqual(expected)
      one.close()
    }
    for (const connection of fronts)
      await eventually(async () => (await connection.call('GET /readyz')).status === 200)
    expect((await fronts[1].call(`DELETE /v1/admin/api-keys/${made.body.key_id}`)).status).toBe(200)
    expect((await fronts[0].call('GET /v1/agents', { key: made.body.key })).status).toBe(401)
    for (const connection of fronts) connection.close()
    await inProcess.stop()
    capture.release()
  })
})
