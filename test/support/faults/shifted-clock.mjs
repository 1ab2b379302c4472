/*
 * Preloaded into a server process (`node --import`), and so into each of its threads. Its clock is shifted by
 * the value in the file named by TEST_CLOCK_SHIFT: 8 bytes, milliseconds as a double, read twenty times a
 * second.
 */
import { openSync, readSync } from 'node:fs'

const READ_INTERVAL_MS = 50
const file = openSync(process.env.TEST_CLOCK_SHIFT, 'r')
const bytes = Buffer.alloc(8)
const { now } = Date
let [shiftMs, readAtMs] = [0, -Infinity]

Date.now = () => {
  if (performance.now() - readAtMs >= READ_INTERVAL_MS) {
    readAtMs = performance.now()
    readSync(file, bytes, 0, 8, 0)
    shiftMs = bytes.readDoubleLE(0)
  }
  return now() + shiftMs
}
