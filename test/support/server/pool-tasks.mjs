/* Tasks of pool threads in tests. While the file `workerData.noStart` exists, no thread can start. */
import { existsSync } from 'node:fs'
import { workerData } from 'node:worker_threads'

if (existsSync(workerData.noStart)) throw new Error('No file descriptors')

/** Distinguishes the threads of this module. */
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

/** Waits until the first word of `memory` is set, and increments the second one during the wait. */
export function work({ memory }) {
  const words = new Int32Array(memory)
  while (Atomics.load(words, 0) === 0) {
    Atomics.add(words, 1, 1)
    Atomics.wait(words, 0, 0, 50)
  }
  return Atomics.load(words, 1)
}
