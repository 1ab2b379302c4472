/*
 * Preloaded into a server process (`node --import`), and so into each of its threads. The clock is stopped at
 * the time in the file named by TEST_CLOCK_FILE: 8 bytes, Unix milliseconds as a double. A test moves it by
 * writing the file. Timers with an interval run fifty times as often, so that tests need not wait for them.
 */
import { openSync, readSync } from 'node:fs'

const file = openSync(process.env.TEST_CLOCK_FILE, 'r')
const bytes = Buffer.alloc(8)

Date.now = () => {
  readSync(file, bytes, 0, 8, 0)
  return bytes.readDoubleLE(0)
}

const { setInterval } = globalThis
globalThis.setInterval = (callback, ms, ...more) => setInterval(callback, ms / 50, ...more)
