/*
 * Loaded before a server: keeps more memory and more handles open from second to second, as a leak does. It is for the
 * main thread alone.
 */
import { openSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const BYTES_A_SECOND = 2_000_000

const held = []

if (isMainThread) {
  setInterval(() => {
    held.push(Array.from({ length: BYTES_A_SECOND / 4 / 8 }, (_none, index) => index + Math.random()))
    openSync('/dev/null')
  }, 250).unref()
}
