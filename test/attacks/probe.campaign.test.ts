import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import {
  expectNoStall,
  longest,
  probed,
  probedOptions,
  slowness,
  stepsPerMs,
  type Timed,
} from '../support/server/probe.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/*
 * A module that is preloaded into every thread of the server: on SIGUSR2 it blocks the front or every shard
 * for the number of steps of work in the file STALL_FILE, and then removes the file.
 */
const plantedStalls = `
  import { readFileSync, rmSync } from 'node:fs'
  import { BroadcastChannel, isMainThread, workerData } from 'node:worker_threads'
  import { work } from '${probedOptions[1]}'
  function block(steps) {
    work(steps)
    rmSync(process.env.STALL_FILE, { force: true })
  }
  const shards = new BroadcastChannel('planted stalls')
  shards.unref()
  if (workerData?.settings?.shard !== undefined) shards.onmessage = ({ data }) => block(data)
  if (isMainThread) {
    process.on('SIGUSR2', () => {
      const { thread, steps } = JSON.parse(readFileSync(process.env.STALL_FILE, 'utf8'))
      if (thread === 'front') block(steps)
      else shards.postMessage(steps)
    })
  }
`

const directory = mkdtempSync(join(tmpdir(), 'strandfast-probe-'))
const stallFile = join(directory, 'stall')
let server: TestServer

beforeAll(async () => {
  const preload = `data:text/javascript,${encodeURIComponent(plantedStalls)}`
  server = await startServer({
    env: { SERVICE_SHARDS: '2', STALL_FILE: stallFile },
    nodeOptions: [...probedOptions, '--import', preload],
  })
})
afterAll(async () => {
  await server.stop()
  rmSync(directory, { recursive: true })
})

/** Blocks a thread of the server by work that takes `ms` on a reference core, and waits for its end. */
async function stall(thread: 'front' | 'shard', ms: number): Promise<void> {
  writeFileSync(stallFile, JSON.stringify({ thread, steps: Math.round(ms * stepsPerMs) }))
  server.process.kill('SIGUSR2')
  await eventually(() => !existsSync(stallFile))
}

const cases: [thread: 'front' | 'shard', shortMs: number, longMs: number][] = [
  ['front', 25, 150],
  ['shard', 125, 750],
]

describe.each([0, 3])('a probe, next to %i busy processes', (count) => {
  const busy: ChildProcess[] = []
  beforeAll(() => {
    // The processes end by themselves, however the test ends.
    const loop = 'const endsAt = Date.now() + 60_000; while (Date.now() < endsAt);'
    for (let n = 0; n < count; n++) busy.push(spawn(process.execPath, ['-e', loop], { stdio: 'ignore' }))
  })
  afterAll(() => {
    for (const one of busy) one.kill('SIGKILL')
  })

  it('sees no stall if only small writes are sent', async () => {
    const seen = await probed(server, async () => {
      for (let n = 0; n < 50; n++)
        await call(server, 'POST /v1/collections/calm/records', { body: { data: { n } } })
    })
    expect(seen.failed).toEqual([])
    expect(seen.requestPairs).toBeGreaterThan(5)
    expectNoStall(seen)
  })

  it.each(cases)(
    'sees a stall of the %s of three times the bound, but not of half the bound',
    async (thread, shortMs, longMs) => {
      const short = await probed(server, () => stall(thread, shortMs))
      const long = await probed(server, () => stall(thread, longMs))
      expectNoStall(short)
      expect(() => expectNoStall(long)).toThrow(`A stall of ${thread === 'front' ? 'the front' : 'a shard'}`)
    },
  )
})

it('a probe sees a shard that is busy with a large batch', async () => {
  const text = JSON.stringify(Array.from({ length: 2_000 }, (_, n) => n / 7))
  const records = Array.from({ length: 200 }, () => ({ data: { list: JSON.parse(text) as unknown } }))
  const small = await probed(server, () =>
    call(server, 'POST /v1/collections/one/records', { body: records[0] }),
  )
  const big = await probed(server, () =>
    call(server, 'POST /v1/collections/probe-0/records/batch', { body: { records } }),
  )
  expect(big.shardMs).toBeGreaterThan(small.shardMs)
})

describe('the control', () => {
  /** Control measurements of the same length, every ten milliseconds. */
  const controls = (ms: number, fromMs = 0) =>
    Array.from({ length: 20 }, (_none, n) => ({ ms, atMs: fromMs + n * 10 }))

  it('halves only times that were measured while work took twice as long', () => {
    const slowFrom1000 = [...controls(0.6), ...controls(1.2, 1_000)]
    expect(slowness(slowFrom1000, 50)).toBe(1)
    expect(slowness(slowFrom1000, 1_050)).toBe(2)
    const longestOf = (...times: Timed[]) => longest(times, (atMs) => slowness(slowFrom1000, atMs))
    expect(longestOf({ ms: 90, atMs: 1_050 }, { ms: 40, atMs: 50 })).toBe(45)
    expect(longestOf({ ms: 60, atMs: 1_050 }, { ms: 40, atMs: 50 })).toBe(40)
  })

  it('ignores a few interrupted measurements, and does not tighten the bounds on a faster machine', () => {
    const interrupted = controls(0.6).map(({ ms, atMs }, n) => ({ ms: n % 3 === 0 ? 20 : ms, atMs }))
    for (let atMs = 0; atMs < 200; atMs++) expect(slowness(interrupted, atMs)).toBe(1)
    expect(slowness(controls(0.2), 50)).toBe(1)
  })
})
