import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { expect } from 'vitest'
import type { TestServer } from './server.js'

const program = join(import.meta.dirname, 'probe-thread.mjs')

/** Node options of a probed server: its threads record their long turns. */
export const probedOptions: readonly string[] = ['--import', pathToFileURL(program).href]

/**
 * The findings of a probe during an attack (Linux). Milliseconds are processor time of a thread, converted to
 * a reference core by the control at the same moments.
 */
export interface Probed {
  /** The longest time in which the front served nothing else, or a request for /healthz waited. */
  frontMs: number
  /** The front's long turns of its event loop, in the order in which they ended. */
  frontTurns: Timed[]
  /** The longest that a shard served nothing else, or kept a small write waiting. */
  shardMs: number
  /** The largest growth of the process's memory, bytes. */
  memoryGrownBytes: number
  /** Pairs of requests of the probe. */
  requestPairs: number
  /** Unexpected answers. */
  failed: string[]
  /** The slowdown against a reference core at a moment of `Date.now()`; at least 1. */
  slownessAt(atMs: number): number
}

/** A duration and the moment in its middle. */
export interface Timed {
  ms: number
  atMs: number
}

/** The limits of docs/SECURITY.md, What one request can cost, on a reference core, milliseconds. */
const FRONT_MS = 50
const SHARD_MS = 250
/** Steps of the control work (probe-thread.mjs), few enough that it is seldom interrupted. */
const CONTROL_STEPS = 50_000
/**
 * The duration of the control on a reference core (Intel Xeon, docs/PERFORMANCE.md), on Node 20, 22 or 24. If
 * it takes twice as long, the server may too.
 */
const CONTROL_MS = 0.6
/** Steps per millisecond of a reference core. */
export const stepsPerMs = CONTROL_STEPS / CONTROL_MS
/** The number of controls whose median is used, so that interrupted ones do not matter. */
const CONTROLS = 9
const MEBIBYTE = 1 << 20

/** Writes go to several agents, so that each shard gets some. */
const agents = Array.from({ length: 8 }, (_, index) => `probe-${index}`)

/**
 * The slowdown against a reference core at a moment, by the nearest controls. At least 1, because the
 * server's time slices are not shorter on a faster machine.
 */
export function slowness(controls: readonly Timed[], atMs: number): number {
  const nearest = controls
    .toSorted((one, other) => Math.abs(one.atMs - atMs) - Math.abs(other.atMs - atMs))
    .slice(0, CONTROLS)
    .map(({ ms }) => ms)
    .sort((one, other) => one - other)
  return Math.max(1, (nearest[nearest.length >> 1] ?? 0) / CONTROL_MS)
}

/** The longest of these times, converted to a reference core. */
export function longest(times: readonly Timed[], slownessAt: Probed['slownessAt']): number {
  return times.reduce((most, { ms, atMs }) => (ms > most ? Math.max(most, ms / slownessAt(atMs)) : most), 0)
}

/** The long turns that the threads of a server have recorded. */
function turnsOf(server: TestServer, kind: 'front' | 'shard'): Timed[] {
  const path = join(server.dataDir, `turns-of-${kind}`)
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Timed)
}

/**
 * Sends requests for /healthz and small writes from another thread while `attack` runs. Figures are processor
 * time of the server's threads, so waiting for a busy machine is not a stall. Each thread measures its long
 * turns itself; waits for many short turns are measured from outside. On a slow or shared core, the control
 * takes longer as well.
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

/** Expects that no client waited longer than docs/SECURITY.md allows. `of`: the measured request. */
export function expectNoStall({ frontMs, shardMs }: Pick<Probed, 'frontMs' | 'shardMs'>, of = ''): void {
  expect(frontMs, `A stall of the front, ms of a reference core ${of}`).toBeLessThan(FRONT_MS)
  expect(shardMs, 'A stall of a shard, ms of a reference core').toBeLessThan(SHARD_MS)
}

/**
 * Runs an attack beside a probe and expects no stall, no ended thread and no large memory growth.
 * @param memoryMebibytes the allowed growth of the process
 */
export async function expectHarmless(
  server: TestServer,
  attack: () => Promise<unknown>,
  { memoryMebibytes = 128 }: { memoryMebibytes?: number } = {},
): Promise<void> {
  const stderrBefore = server.stderr().length
  const found = await probed(server, attack)
  expect(found.requestPairs).toBeGreaterThan(0)
  const stderr = server.stderr().slice(stderrBefore)
  expect({ ...found, ended: server.process.exitCode, stderr }).toEqual({
    ...found,
    failed: [],
    ended: null,
    stderr: expect.not.stringMatching(/thread|shard .*(ended|restart)/i),
  })
  expect(found.memoryGrownBytes / MEBIBYTE).toBeLessThan(memoryMebibytes)
  expectNoStall(found)
}
