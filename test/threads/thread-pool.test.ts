import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { RefusedError } from '../../dist/src/base/errors.js'
import { ThreadPool } from '../../dist/src/dispatch/pools/thread-pool.js'
import { eventually } from '../support/eventually.js'

/** Longer than any test takes. */
const AGES_MS = 600_000

let directory: string
let noStart: string
let pool: ThreadPool
let events: string[]

function open(settings: { threads: number; waitMs?: number }): ThreadPool {
  return new ThreadPool({
    name: 'tests',
    file: new URL('../support/server/pool-tasks.mjs', import.meta.url),
    workerData: { noStart },
    niced: false,
    idleMs: AGES_MS,
    listener: {
      failed: (name, error) => events.push(`${name} failed: ${error.message}`),
      serves: (name) => events.push(`${name} serves`),
      ended: (name, error) => events.push(`${name} ended: ${error.message}`),
    },
    ...settings,
  })
}

function run(
  name: string,
  { task = {}, deadlineMs = AGES_MS, ...more }: Partial<Run> = {},
): Promise<unknown> {
  return pool.run(task, { name, deadlineMs, ...more })
}

interface Run {
  caller: string
  task: object
  deadlineMs: number
  steps(): number
}

/** The code with which a task was refused. */
async function refusalOf(task: Promise<unknown>): Promise<unknown> {
  const error = await task.catch((error: unknown) => error)
  return error instanceof RefusedError ? error.refusal.code : error
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-pool-'))
  noStart = join(directory, 'no-start')
  events = []
})

afterEach(async () => {
  await pool.close()
  rmSync(directory, { recursive: true, force: true })
})

describe('a pool whose threads do not start', () => {
  it('carries out waiting tasks once threads start, with all threads, and reports it', async () => {
    pool = open({ threads: 2 })
    writeFileSync(noStart, '')
    const waiting = Array.from({ length: 8 }, () => run('which'))
    await eventually(() => pool.figures.failedStarts >= 4)
    expect(pool.serving).toBe(false)
    rmSync(noStart)
    expect(new Set(await Promise.all(waiting)).size).toBeLessThanOrEqual(2)
    expect(pool.serving).toBe(true)
    expect(events).toEqual(['tests failed: No file descriptors', 'tests serves'])
    // Two concurrent tasks: both threads are available again.
    const memory = new SharedArrayBuffer(8)
    const both = [run('work', { task: { memory } }), run('work', { task: { memory } })]
    const words = new Int32Array(memory)
    await eventually(() => pool.waiting === 0 && Atomics.load(words, 1) > 1)
    Atomics.store(words, 0, 1)
    await Promise.all(both)
  })

  it('serves again even if there are no more tasks', async () => {
    pool = open({ threads: 1, waitMs: 1 })
    writeFileSync(noStart, '')
    expect(await refusalOf(run('which'))).toBe('unavailable')
    expect(pool.serving).toBe(false)
    rmSync(noStart)
    // The pool serves once a thread has started, and reports it once that thread has done something.
    await eventually(() => events.length > 1)
    expect(pool.serving).toBe(true)
    expect(events).toEqual(['tests failed: No file descriptors', 'tests serves'])
  })

  it('can be closed while no thread starts', async () => {
    pool = open({ threads: 1 })
    writeFileSync(noStart, '')
    const waiting = refusalOf(run('which'))
    await eventually(() => pool.figures.failedStarts > 0)
    await pool.close()
    expect(await waiting).toBe('unavailable')
  })
})

describe('a task of a pool', () => {
  it('is refused when it hangs, and another thread replaces its thread', async () => {
    pool = open({ threads: 1 })
    const before = await run('which')
    expect(await refusalOf(run('hang', { deadlineMs: 500 }))).toBe('unavailable')
    expect(await run('which')).not.toBe(before)
    expect(pool.figures).toMatchObject({ hangs: 1, deaths: 0, failedStarts: 0, serving: true })
    expect(events).toEqual(['tests ended: The thread did not finish its task in time and was ended'])
  })

  it('takes as long as it needs while it makes progress', async () => {
    pool = open({ threads: 1 })
    const memory = new SharedArrayBuffer(8)
    const words = new Int32Array(memory)
    const steps = () => Atomics.load(words, 1)
    const working = run('work', { task: { memory }, deadlineMs: 500, steps })
    // Fifty steps take five times as long as the task may take without progress.
    await eventually(() => steps() >= 50)
    Atomics.store(words, 0, 1)
    expect(await working).toBeGreaterThanOrEqual(50)
  })

  it('is refused when it ends its thread, and other tasks get another thread', async () => {
    pool = open({ threads: 1 })
    const [died, next] = [refusalOf(run('die')), run('which')]
    expect(await died).toBe('unavailable')
    expect(await next).toBeTypeOf('number')
    expect(pool.figures).toMatchObject({ deaths: 1, hangs: 0, serving: true })
  })

  it('does not end its thread when it throws', async () => {
    pool = open({ threads: 1 })
    const before = await run('which')
    await expect(run('fail')).rejects.toThrow('The task failed')
    expect(await run('which')).toBe(before)
    expect(events).toEqual([])
  })

  it('is refused after it has waited for a thread for the maximum time', async () => {
    pool = open({ threads: 1, waitMs: 1 })
    const memory = new SharedArrayBuffer(8)
    const working = run('work', { task: { memory } })
    expect(await refusalOf(run('which'))).toBe('overloaded')
    Atomics.store(new Int32Array(memory), 0, 1)
    await working
  })

  it('finishes before its thread is renewed, and the next task gets another thread', async () => {
    pool = open({ threads: 1 })
    const before = await run('which')
    const memory = new SharedArrayBuffer(8)
    const words = new Int32Array(memory)
    const working = run('work', { task: { memory } })
    await eventually(() => Atomics.load(words, 1) > 0)
    let isRenewed = false
    const renewed = pool.renew().then(() => (isRenewed = true))
    const next = run('which')
    const steps = Atomics.load(words, 1)
    await eventually(() => Atomics.load(words, 1) >= steps + 5)
    expect(isRenewed).toBe(false)
    Atomics.store(words, 0, 1)
    expect(await working).toBeGreaterThan(steps)
    await renewed
    expect(await next).not.toBe(before)
    expect(pool.figures).toMatchObject({ deaths: 0, hangs: 0 })
  })

  it('is not started by a thread that is about to end', async () => {
    pool = open({ threads: 1 })
    const before = await run('which')
    const next = run('which')
    // The task is assigned to the thread, but has not arrived there.
    const renewed = pool.renew()
    expect(await next).not.toBe(before)
    await renewed
    expect(pool.figures).toMatchObject({ deaths: 0, hangs: 0, failedStarts: 0 })
  })

  it('delays the renewal or closing of its pool at most until its deadline if it hangs', async () => {
    pool = open({ threads: 1 })
    const hanging = () => refusalOf(run('hang', { deadlineMs: 500 }))
    const first = hanging()
    await pool.renew()
    expect(await first).toBe('unavailable')
    expect(await run('which')).toBeTypeOf('number')
    const second = hanging()
    await pool.close()
    expect(await second).toBe('unavailable')
  })
})

describe('a pool with tasks of several callers', () => {
  it('lets callers take turns, however many tasks one of them has', async () => {
    pool = open({ threads: 1 })
    const memory = new SharedArrayBuffer(8)
    const first = run('work', { task: { memory } })
    const done: string[] = []
    const named = async (caller: string) => {
      await run('which', { caller })
      done.push(caller)
    }
    const tasks = [...Array.from({ length: 50 }, () => named('many')), named('few'), named('few')]
    Atomics.store(new Int32Array(memory), 0, 1)
    await Promise.all([first, ...tasks])
    expect(done.slice(0, 5)).toEqual(['many', 'few', 'many', 'few', 'many'])
    expect(done).toHaveLength(52)
  })
})
