import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { expect } from 'vitest'
import type { TestServer } from './server.js'

const program = join(import.meta.dirname, 'probe-thread.mjs')

/** What node is given to run a server that is probed: its threads note their long turns. */
export const probedOptions: readonly string[] = ['--import', pathToFileURL(program).href]

/**
 * What a probe saw of a server during an attack (Linux). Milliseconds are processor time of a thread, converted to what the
 * same work takes on a reference core by the control that ran in the same moments.
 */
export interface Probed {
  /** The longest that the front served nothing else, or kept a request for /healthz waiting. */
  frontMs: number
  /** The front's long turns of its event loop, in the order in which they ended. */
  frontTurns: Timed[]
  /** The longest that a shard served nothing else, or kept a small write waiting. */
  shardMs: number
  /** Memory by which the process grew at the most, bytes. */
  memoryGrownBytes: number
  /** Pairs of requests that the probe sent. */
  requestPairs: number
  /** Answers that were not the expected ones. */
  failed: string[]
  /** How many times as long as on a reference core work took at a moment of `Date.now()`; at least 1. */
  slownessAt(atMs: number): number
}

/** How long something took, and the moment in its middle. */
export interface Timed {
  ms: number
  atMs: number
}

/** docs/SECURITY.md, What one request can cost: what a reference core does in so many milliseconds. */
const FRONT_MS = 50
const SHARD_MS = 250
/** The control: so many steps of work (probe-thread.mjs). It is short, so that it is seldom interrupted. */
const CONTROL_STEPS = 50_000
/**
 * What it takes on a reference core (Intel Xeon, docs/PERFORMANCE.md), on Node 20, 22 or 24. Where it takes twice as long, the
 * server may too.
 */
const CONTROL_MS = 0.6
/** What a reference core does in a millisecond. */
export const stepsPerMs = CONTROL_STEPS / CONTROL_MS
/** Controls of which the median counts: those that were interrupted change nothing. */
const CONTROLS = 9
const MEBIBYTE = 1 << 20

/** Writes go to as many agents, so that each shard gets some of them. */
const agents = Array.from({ length: 8 }, (_, index) => `probe-${index}`)

/**
 * How many times as long as on a reference core work took at a moment, by the controls nearest to it. At least 1: the time
 * slices of the server last as long on a faster machine.
 */
export function slowness(controls: readonly Timed[], atMs: number): number {
  const nearest = controls
    .toSorted((one, other) => Math.abs(one.atMs - atMs) - Math.abs(other.atMs - atMs))
    .slice(0, CONTROLS)
    .map(({ ms }) => ms)
    .sort((one, other) => one - other)
  return Math.max(1, (nearest[nearest.length >> 1] ?? 0) / CONTROL_MS)
}

/** The longest of some times, each converted to what the same work takes on a reference core. */
export function longest(times: readonly Timed[], slownessAt: Probed['slownessAt']): number {
  return times.reduce((most, { ms, atMs }) => (ms > most ? Math.max(most, ms / slownessAt(atMs)) : most), 0)
}

/** The long turns that threads of a server have noted so far. */
function turnsOf(server: TestServer, kind: 'front' | 'shard'): Timed[] {
  const path = join(server.dataDir, `turns-of-${kind}`)
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Timed)
}

/**
 * Sends a server requests for /healthz and small writes, again and again from another thread, while `attack` runs. Its figures
 * are processor time of the server's threads: that a busy machine keeps a thread waiting is no stall. A turn of a thread is
 * measured by the thread itself, exactly; that a request waits for many short turns is found from outside, and less of it on
 * a busy machine. Where processor time itself is worth less (a slow core, or another thread on the other half of it), the
 * control takes longer as well.
 */
export async function probed(server: TestServer, attack: () => Promise<unknown>): Promise<Probed> {
  const { url, rootKey, dataDir } = server
  const { pid, spawnargs } = server.process
  if (!probedOptions.every((option) => spawnargs.includes(option)))
    throw new Error('Expected a server that was started with probedOptions')
  const workerData = { probe: { url, pid, rootKey, dataDir, agents, controlSteps: CONTROL_STEPS } }
  const thread = new Worker(program, { workerData })
  try {
    const [ready] = await once(thread, 'message')
    const [frontBefore, shardBefore] = [turnsOf(server, 'front').length, turnsOf(server, 'shard').length]
    try {
      await attack()
    } finally {
      thread.postMessage('done')
    }
    const [seen] = await once(thread, 'message')
    const slownessAt = (atMs: number) => slowness(seen.controls, atMs)
    const frontTurns = turnsOf(server, 'front').slice(frontBefore)
    return {
      frontMs: longest([...frontTurns, ...seen.front], slownessAt),
      frontTurns,
      shardMs: longest([...turnsOf(server, 'shard').slice(shardBefore), ...seen.shard], slownessAt),
      memoryGrownBytes: seen.memoryBytes - ready.memoryBytes,
      requestPairs: seen.front.length,
      failed: seen.failed,
      slownessAt,
    }
  } finally {
    await thread.terminate()
  }
}

/** Expects that no client waited for longer than docs/SECURITY.md promises. `of`: the request that was measured. */
export function expectNoStall({ frontMs, shardMs }: Pick<Probed, 'frontMs' | 'shardMs'>, of = ''): void {
  expect(frontMs, `A stall of the front, ms of a reference core ${of}`).toBeLessThan(FRONT_MS)
  expect(shardMs, 'A stall of a shard, ms of a reference core').toBeLessThan(SHARD_MS)
}

/**
 * Runs an attack beside a probe and expects that it hurt no other client: no stall, no ended thread, no memory in use.
 * `memoryMebibytes`: what the process may grow by while it lasts.
 */
export async function expectHarmless(
  server: TestServer,
  attack: () => Promise<unknown>,
  { memoryMebibytes = 128 }: { memoryMebibytes?: number } = {},
): Promise<void> {
  const stderrBefore = server.stderr().length
  const seen = await probed(server, attack)
  expect(seen.requestPairs).toBeGreaterThan(0)
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
