/**
 * Loaded before the server, in each of its threads: that of a front does what the file in STRANDFAST_FRONT_FAULT says,
 * once it is there: `die` by an exception that nobody catches, or `hang`. The main thread the same by STRANDFAST_MAIN_FAULT.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isMainThread, workerData } from 'node:worker_threads'

const { STRANDFAST_FRONT_FAULT: ofFront, STRANDFAST_MAIN_FAULT: ofMain } = process.env
const isFront = !isMainThread && workerData?.kind === 'front'
const file = isMainThread ? ofMain : isFront ? ofFront : undefined
if (file !== undefined) {
  const looks = setInterval(() => {
    if (!existsSync(file)) return
    clearInterval(looks)
    if (readFileSync(file, 'utf8') === 'die') throw new Error('A fault of the test')
    for (;;);
  }, 20)
}
