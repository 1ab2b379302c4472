import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import sodium from 'sodium-native'

/** Approximate bytes of the text that a record's signature covers. */
const HEADER_BYTES = 350
/** Signatures between two reads of the clock. */
const BURST = 256

/**
 * Ed25519 signatures a second by sodium over a text as long as a record's header.
 * @param {{threads: number, durationMs: number}} options
 * @returns {Promise<number>} of all threads together
 */
export async function signRate({ threads, durationMs }) {
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
  const publicKey = Buffer.alloc(sodium.crypto_sign_PUBLICKEYBYTES)
  const secretKey = Buffer.alloc(sodium.crypto_sign_SECRETKEYBYTES)
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, Buffer.alloc(sodium.crypto_sign_SEEDBYTES, 7))
  const text = Buffer.alloc(HEADER_BYTES, 'strand-record/v1\n')
  const signature = Buffer.alloc(sodium.crypto_sign_BYTES)
  const startMs = performance.now()
  let count = 0
  let elapsedMs = 0
  while (elapsedMs < durationMs) {
    for (let index = 0; index < BURST; index++) {
      text.writeUInt32LE(count++)
      sodium.crypto_sign_detached(signature, text, secretKey)
    }
    elapsedMs = performance.now() - startMs
  }
  return (count / elapsedMs) * 1000
}

if (!isMainThread) {
  parentPort.once('message', (durationMs) => parentPort.postMessage(measure(durationMs)))
  parentPort.postMessage('ready')
}
