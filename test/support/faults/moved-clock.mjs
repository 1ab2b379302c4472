/*
 * Preloaded into a server process (`node --import`), and so into each of its threads: the clock stands still at what
 * the file named by TEST_CLOCK_FILE says, 8 bytes, Unix milliseconds as a double. A test moves it by writing the file.
 * What the server does every now and then it does fifty times as often, so that a test need not wait for it.
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
