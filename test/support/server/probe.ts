import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { expect } from 'vitest'
import type { TestServer } from './server.js'

/** What a probe saw of a server while something else was done to it (Linux). */
export interface Probed {
  /** The longest that the front kept a request for /healthz waiting, milliseconds of its processor time. */
  frontMs: number
  /** The longest that a shard thread kept a small write waiting, milliseconds of its processor time. */
  shardMs: number
  /** Memory by which the process grew at the most, bytes. */
  memoryGrownBytes: number
  /** Pairs of requests that the probe made. */
  asked: number
  /** Answers that were not the expected ones. */
  failed: string[]
}

/** docs/SECURITY.md, What one request can cost. */
const FRONT_MS = 50
const SHARD_MS = 250
const MEBIBYTE = 1 << 20

/** Writes go to as many agents, so that each shard gets some of them. */
const agents = Array.from({ length: 8 }, (_, index) => `probe-${index}`)

/**
 * Asks a server for /healthz and writes a small record, again and again from a thread of its own, while `attack` runs.
 * It counts processor time of the server's threads, not time: a busy machine makes no stall of it.
 */
export async function probed(server: TestServer, attack: () => Promise<unknown>): Promise<Probed> {
  const workerData = { url: server.url, pid: server.process.pid, rootKey: server.rootKey, agents }
  const thread = new Worker(join(import.meta.dirname, 'probe-thread.mjs'), { workerData })
  try {
    const [{ ready }] = await once(thread, 'message')
    try {
      await attack()
    } finally {
      thread.postMessage('done')
    }
    const [{ seen }] = await once(thread, 'message')
    const { memoryBytes, ...rest } = seen
    return { ...rest, memoryGrownBytes: memoryBytes - ready }
  } finally {
    await thread.terminate()
  }
}

/** Expects that nobody was kept waiting for longer than docs/SECURITY.md promises. `of`: what was waited for. */
export function expectNoStall({ frontMs, shardMs }: Pick<Probed, 'frontMs' | 'shardMs'>, of = ''): void {
  expect(frontMs, `A stall of the front, ms ${of}`).toBeLessThan(FRONT_MS)
  expect(shardMs, 'A stall of a shard, ms').toBeLessThan(SHARD_MS)
}

/**
 * Runs an attack beside a probe and expects that it hurt nobody else: no stall, no ended thread, no memory kept.
 * `memoryMebibytes`: what the process may grow by while it lasts.
 */
export async function expectHarmless(
  server: TestServer,
  attack: () => Promise<unknown>,
  { memoryMebibytes = 128 }: { memoryMebibytes?: number } = {},
): Promise<void> {
  const stderrBefore = server.stderr().length
  const seen = await probed(server, attack)
  expect(seen.asked).toBeGreaterThan(0)
  const said = server.stderr().slice(stderrBefore)
  expect({ ...seen, ended: server.process.exitCode, said }).toEqual({
    ...seen,
    failed: [],
    ended: null,
    said: expect.not.stringMatching(/thread|shard .*(ended|restart)/i),
  })
  expect(seen.memoryGrownBytes / MEBIBYTE).toBeLessThan(memoryMebibytes)
  expectNoStall(seen)
}
