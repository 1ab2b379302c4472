/**
 * Loaded before the server, in each of its threads: that of a front does what the file in STRANDFAST_FRONT_FAULT says,
 * once it is there: `die` by an exception that nobody catches, or `hang`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isMainThread, workerData } from 'node:worker_threads'

const { STRANDFAST_FRONT_FAULT: file } = process.env
if (!isMainThread && workerData?.kind === 'front' && file !== undefined) {
  const looks = setInterval(() => {
    if (!existsSync(file)) return
    clearInterval(looks)
    if (readFileSync(file, 'utf8') === 'die') throw new Error('A fault of the test')
    for (;;);
  }, 20)
}
