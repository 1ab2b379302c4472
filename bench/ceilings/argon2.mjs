import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { hashSync, verifySync } from '@node-rs/argon2'

/** The parameters of the server's password hashes: argon2id, memory in KiB. */
const parameters = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 }
const PASSWORD = 'as long as a usual passphrase'

/**
 * The ceiling of logins: password checks a second against argon2id hashes on this many threads that do
 * nothing else.
 * @param {{threads: number, durationMs: number}} options
 * @returns {Promise<number>} of all threads together
 */
export async function argon2Rate({ threads, durationMs }) {
  const workers = Array.from({ length: threads }, () => new Worker(new URL(import.meta.url)))
  // All workers must have loaded before the first one starts.
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const rates = workers.map(async (worker) => {
    worker.postMessage(durationMs)
    const [rate] = await once(worker, 'message')
    await worker.terminate()
    return rate
  })
  return (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0)
}

function measure(durationMs) {
  const encoded = hashSync(PASSWORD, parameters)
  const startMs = performance.now()
  let count = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    if (!verifySync(encoded, PASSWORD)) throw new Error('The password is the one that was hashed')
    count++
    elapsedMs = performance.now() - startMs
  }
  return (count / elapsedMs) * 1_000
}

if (!isMainThread) {
  parentPort.once('message', (durationMs) => parentPort.postMessage(measure(durationMs)))
  parentPort.postMessage('ready')
}
