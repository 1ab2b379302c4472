/*
 * What threads of pools do in tests. While the file that `workerData` names exists, no thread of it can be started.
 */
import { existsSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

if (existsSync(workerData.noStart)) throw new Error('No file descriptors')

/** Threads of this module that were started are told from each other by it. */
const thread = Math.random()

export function begin() {}

export function which() {
  return thread
}

export function fail() {
  throw new Error('The task failed')
}

export function die() {
  process.exit(7)
}

export function hang() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

/** Waits until the first word of `memory` is set, counting the second one up meanwhile. */
export function work({ memory }) {
  const words = new Int32Array(memory)
  while (Atomics.load(words, 0) === 0) {
    Atomics.add(words, 1, 1)
    Atomics.wait(words, 0, 0, 50)
  }
  return Atomics.load(words, 1)
}
