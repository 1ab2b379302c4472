/*
 * Preloaded into a server process (`node --import`), and so into each of its threads: while the file named by
 * TEST_HANG_FILE exists, the thread of one shard, or that which follows other nodes, hangs where its text says, as
 * "decision 0" for shard 0, or "transaction follower":
 *
 *   decision     for ever, while a write is decided, in JavaScript
 *   transaction  for ever, in the middle of a transaction of LMDB, in JavaScript
 *   kernel       in a call into the kernel, until somebody opens the named pipe TEST_HANG_PIPE for writing
 */
import { openSync, readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread, workerData } from 'node:worker_threads'
import zlib from 'node:zlib'

/** No other thread is handed the length of the lease. */
const isFollower = workerData?.leaseMs !== undefined
/** How a thread is called in the file. */
const own = isFollower ? 'follower' : `${workerData?.settings?.shard}`

function place() {
  try {
    const [where, shard] = readFileSync(process.env.TEST_HANG_FILE, 'utf8').split(' ')
    return shard === own ? where : ''
  } catch {
    return ''
  }
}

const forEver = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)

if (!isMainThread && own !== 'undefined') {
  const { now } = Date
  Date.now = () => {
    const where = place()
    if (where === 'decision') forEver()
    if (where === 'kernel') openSync(process.env.TEST_HANG_PIPE, 'r')
    return now()
  }
  const { crc32 } = zlib
  zlib.crc32 = (...parameters) => {
    if (place() === 'transaction' && new Error().stack.includes('transactionSync')) forEver()
    return crc32(...parameters)
  }
  syncBuiltinESMExports()
}
