/**
 * Loaded before the server, in each of its threads. Once the file in STRANDFAST_FRONT_FAULT exists, a front
 * thread fails as its text says: `die` by an uncaught exception, or `hang`. For the main thread, the file is
 * in STRANDFAST_MAIN_FAULT.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isMainThread, workerData } from 'node:worker_threads'

const { STRANDFAST_FRONT_FAULT: ofFront, STRANDFAST_MAIN_FAULT: ofMain } = process.env
const isFront = !isMainThread && workerData?.kind === 'front'
const file = isMainThread ? ofMain : isFront ? ofFront : undefined
if (file !== undefined) {
  const timer = setInterval(() => {
    if (!existsSync(file)) return
    clearInterval(timer)
    if (readFileSync(file, 'utf8') === 'die') throw new Error('A fault of the test')
    for (;;);
  }, 20)
}
