/*
 * Preloaded into a server process (`node --import`), and so into each of its threads: its clock is as far from that of the
 * machine as the file named by TEST_CLOCK_SHIFT says, 8 bytes, milliseconds as a double, looked at twenty times a second.
 */
import { openSync, readSync } from 'node:fs'

const LOOK_EVERY_MS = 50
const file = openSync(process.env.TEST_CLOCK_SHIFT, 'r')
const bytes = Buffer.alloc(8)
const { now } = Date
let [shiftMs, lookedAtMs] = [0, -Infinity]

Date.now = () => {
  if (performance.now() - lookedAtMs >= LOOK_EVERY_MS) {
    lookedAtMs = performance.now()
    readSync(file, bytes, 0, 8, 0)
    shiftMs = bytes.readDoubleLE(0)
  }
  return now() + shiftMs
}
