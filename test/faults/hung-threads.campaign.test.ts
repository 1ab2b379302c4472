import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { shardOf } from '../../src/strand/placement.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { buildDiskShim, shimMissing } from '../support/faults/disk-shim.js'
import { eventually } from '../support/eventually.js'
import { leftOut } from '../support/faults/rounds.js'
import { metricsNow } from '../support/http/metrics.js'
import { call, startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

/** Agents in different shards. */
const [hung, other] = ['apple', 'pear'] as const

let directory: string
let server: TestServer
let nodeOptions: string[]

/** Makes the thread hang at a point, or stops that. */
function hangAt(place: 'decision' | 'transaction' | 'kernel' | undefined): void {
  if (place === undefined) rmSync(join(directory, 'hang'))
  else writeFileSync(join(directory, 'hang'), `${place} ${shardOf(hung, 2)}`)
}

function settings(): Record<string, string> {
  return {
    TEST_HANG_FILE: join(directory, 'hang'),
    TEST_HANG_PIPE: join(directory, 'pipe'),
    SERVICE_SHARDS: '2',
    SERVICE_SHARD_SILENCE_SECS: '2',
    // Only the test sends commands.
    SERVICE_LOG_INTERVAL_SECS: '0',
  }
}

/** Whether PID namespaces are available. */
function hasNamespaces(): boolean {
  return spawnSync('unshare', ['--pid', '--fork', 'true']).status === 0
}

async function start(env: Record<string, string> = {}, node = process.execPath): Promise<void> {
  server = await startServer({
    node,
    dataDir: join(directory, 'data'),
    nodeOptions,
    env: { ...settings(), ...env },
  })
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-hung-'))
  mkdirSync(join(directory, 'data'), { mode: 0o700 })
  spawnSync('mkfifo', [join(directory, 'pipe')])
  nodeOptions = ['--import', new URL('../support/faults/hanging-thread.mjs', import.meta.url).href]
})

afterEach(async () => {
  await server.halt('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

function write(agent: string, n: number): Promise<TestAnswer> {
  return call(server, `POST /v1/collections/${agent}/records`, {
    body: { data: { n } },
    headers: { 'idempotency-key': `write-${n}` },
  })
}

/** Repeats a write with one idempotency key until it succeeds. */
async function writeSurely(agent: string, n: number): Promise<void> {
  await eventually(async () => (await write(agent, n)).status === 201)
}

/** The numbers on the strand, after verifying it. */
async function numbersOn(agent: string): Promise<number[]> {
  const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
  const lines = text.trimEnd().split('\n')
  expect(await verifyExport(lines)).toMatchObject({ ok: true })
  return lines.slice(2, -1).map((line) => {
    const { body }: { body: string } = JSON.parse(line)
    return JSON.parse(body).n
  })
}

async function metric(name: string): Promise<number[]> {
  const text = await metricsNow(() => call(server, 'GET /metrics', { key: null }))
  return [...text.matchAll(new RegExp(`^${name}\\{shard="\\d"\\} (\\S+)$`, 'gm'))].map((found) =>
    Number(found[1]),
  )
}

function timesLogged(text: string): number {
  return server.stderr().split(text).length - 1
}

const lastLine = 'a shard thread cannot be replaced: the process exits'

describe('a shard thread that hangs', { timeout: 180_000 }, () => {
  it('is ended and replaced, and its callers get outcome_unknown', async () => {
    await start()
    await write(hung, 0)
    await write(other, 0)
    hangAt('decision')
    const answering = write(hung, 1)
    await eventually(() => timesLogged('a shard thread hangs: ending it') === 1)
    hangAt(undefined)
    const { status, body } = await answering
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'outcome_unknown' })
    await writeSurely(hung, 1)
    await writeSurely(hung, 2)
    await writeSurely(other, 1)
    expect(await numbersOn(hung)).toEqual([0, 1, 2])
    expect(await numbersOn(other)).toEqual([0, 1])
    expect(await metric('strandfast_shard_hangs_total')).toEqual([1, 0])
    expect(await metric('strandfast_shard_ends_total')).toEqual([1, 0])
    expect(timesLogged(lastLine)).toBe(0)
    expect(await server.halt()).toBe(0)
  })

  it('does not block other shards', async () => {
    await start()
    await write(hung, 0)
    await write(other, 0)
    hangAt('decision')
    const answering = write(hung, 1)
    await eventually(async () => Math.max(...(await metric('strandfast_shard_silent_seconds'))) > 0)
    expect((await call(server, `GET /v1/agents/${other}/head`)).status).toBe(200)
    await eventually(() => timesLogged('a shard thread hangs: ending it') === 1)
    hangAt(undefined)
    expect((await answering).status).toBe(503)
    await writeSurely(hung, 1)
  })

  it('ends the process with 1 when its successor hangs too, and no acknowledged write is lost', async () => {
    await start()
    for (let n = 0; n < 5; n++) await write(hung, n)
    const exited = once(server.process, 'exit')
    hangAt('decision')
    void write(hung, 5).catch(() => undefined)
    await eventually(() => timesLogged('a shard thread serves again') === 1)
    void write(hung, 6).catch(() => undefined)
    expect(await exited).toEqual([1, null])
    expect(timesLogged(lastLine)).toBe(1)
    expect(server.stderr()).toContain('its thread hangs again')
    hangAt(undefined)
    await start()
    expect(await numbersOn(hung)).toEqual([0, 1, 2, 3, 4])
    await writeSurely(hung, 7)
  })

  it.each(['kernel', 'transaction'] as const)(
    'ends the process if the thread cannot be ended (%s), and no acknowledged write is lost',
    async (place) => {
      await start()
      for (let n = 0; n < 5; n++) await write(hung, n)
      const exited = once(server.process, 'exit')
      hangAt(place)
      await Promise.all([write(hung, 5).catch(() => undefined), exited])
      expect(server.process.signalCode).toBe('SIGKILL')
      expect(timesLogged(lastLine)).toBe(1)
      expect(server.stderr()).toContain('its thread hangs and cannot be ended')
      hangAt(undefined)
      await start()
      // A transaction comes after the log, so the last write may exist although its client got no answer.
      const mayBe = place === 'transaction' ? [5] : []
      expect([
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, ...mayBe],
      ]).toContainEqual(await numbersOn(hung))
      await writeSurely(hung, 5)
      expect(await numbersOn(hung)).toEqual([0, 1, 2, 3, 4, 5])
    },
  )

  it.skipIf(!hasNamespaces())(
    'also ends the first process of a container, which no signal from inside can kill',
    async () => {
      const first = join(directory, 'first')
      const command = `exec unshare --pid --fork --kill-child '${process.execPath}' "$@"`
      writeFileSync(first, `#!/bin/sh\n${command}\n`, { mode: 0o700 })
      await start({}, first)
      await write(hung, 0)
      const exited = once(server.process, 'exit')
      hangAt('transaction')
      await Promise.all([write(hung, 1).catch(() => undefined), exited])
      expect(timesLogged(lastLine)).toBe(1)
      hangAt(undefined)
      await start()
      expect((await numbersOn(hung))[0]).toBe(0)
    },
  )

  it('does not delay the end of a process whose main thread fails, even in a transaction', async () => {
    nodeOptions.push('--import', new URL('../support/faults/front-fault.mjs', import.meta.url).href)
    const failing = join(directory, 'failing')
    await start({ STRANDFAST_MAIN_FAULT: failing, SERVICE_SHARD_SILENCE_SECS: '60' })
    for (let n = 0; n < 5; n++) await write(hung, n)
    const exited = once(server.process, 'exit')
    hangAt('transaction')
    void write(hung, 5).catch(() => undefined)
    await eventually(async () => Math.max(...(await metric('strandfast_shard_silent_seconds'))) > 0)
    writeFileSync(failing, 'die')
    expect(await exited).toEqual([null, 'SIGKILL'])
    expect(timesLogged('The server failed: Error: A fault of the test')).toBe(1)
    hangAt(undefined)
    await start()
    expect((await numbersOn(hung)).slice(0, 5)).toEqual([0, 1, 2, 3, 4])
  })

  it('does not delay a shutdown beyond its timeout', async () => {
    await start({ SERVICE_SHUTDOWN_TIMEOUT_SECS: '1', SERVICE_SHARD_SILENCE_SECS: '0' })
    await write(hung, 0)
    hangAt('kernel')
    void write(hung, 1).catch(() => undefined)
    await eventually(async () => Math.max(...(await metric('strandfast_shard_queue_depth'))) > 0)
    await server.halt()
    expect(server.process.signalCode).toBe('SIGKILL')
    expect(server.stderr()).toContain('The server did not stop within 1 s')
    hangAt(undefined)
    await start()
    expect(await numbersOn(hung)).toEqual([0])
  })
})

describe.skipIf(leftOut(shimMissing))('a disk that stalls', { timeout: 180_000 }, () => {
  it.each([
    ['for a while, after which another thread serves the shard', true],
    ['permanently, which ends the process', false],
  ])('loses no acknowledged write: it stalls %s', async (_what, comesBack) => {
    const shim = buildDiskShim()
    const stalled = join(directory, 'stalled')
    try {
      await start(shim.under(join(directory, 'data'), { SHIM_STALL: stalled }))
      for (let n = 0; n < 5; n++) await write(hung, n)
      const exited = once(server.process, 'exit')
      writeFileSync(stalled, '')
      const answering = write(hung, 5).catch(() => undefined)
      await eventually(() => timesLogged('a shard thread hangs: ending it') === 1)
      if (comesBack) {
        rmSync(stalled)
        expect((await answering)?.body.code).toBe('outcome_unknown')
      } else {
        await exited
        expect(timesLogged(lastLine)).toBe(1)
        rmSync(stalled)
        await start()
      }
      await writeSurely(hung, 5)
      expect(await numbersOn(hung)).toEqual([0, 1, 2, 3, 4, 5])
      expect(timesLogged(lastLine)).toBe(0)
    } finally {
      shim.remove()
    }
  })
})
