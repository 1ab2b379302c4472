/*
 * Loaded before a server: leaks memory and handles continuously, in the main thread only.
 */
import { openSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const BYTES_A_SECOND = 2_000_000

const leaked = []

if (isMainThread) {
  setInterval(() => {
    leaked.push(Array.from({ length: BYTES_A_SECOND / 4 / 8 }, (_none, index) => index + Math.random()))
    openSync('/dev/null')
  }, 250).unref()
}
