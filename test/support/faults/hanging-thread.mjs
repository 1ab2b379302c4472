/*
 * Preloaded into a server process (`node --import`), and so into each of its threads. While the file named by
 * TEST_HANG_FILE exists, the thread of one shard or the follower thread hangs at the point that the file
 * contains, such as "decision 0" for shard 0, or "transaction follower":
 *
 *   decision     permanently, while a write is decided, in JavaScript
 *   transaction  permanently, in the middle of a transaction of LMDB, in JavaScript
 *   kernel       in a system call, until the test opens the named pipe TEST_HANG_PIPE for writing
 *
 * A thread that hangs in a transaction makes the file with the suffix `.hangs` first.
 */
import { openSync, readFileSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread, workerData } from 'node:worker_threads'
import zlib from 'node:zlib'

/** Only the follower thread receives the length of the lease. */
const isFollower = workerData?.leaseMs !== undefined
/** The name of this thread in the file. */
const threadName = isFollower ? 'follower' : `${workerData?.settings?.shard}`

function hangPoint() {
  try {
    const [point, shard] = readFileSync(process.env.TEST_HANG_FILE, 'utf8').split(' ')
    return shard === threadName ? point : ''
  } catch {
    return ''
  }
}

const hang = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)

if (!isMainThread && threadName !== 'undefined') {
  const { now } = Date
  Date.now = () => {
    const point = hangPoint()
    if (point === 'decision') hang()
    if (point === 'kernel') openSync(process.env.TEST_HANG_PIPE, 'r')
    return now()
  }
  const { crc32 } = zlib
  zlib.crc32 = (...parameters) => {
    if (hangPoint() === 'transaction' && new Error().stack.includes('transactionSync')) {
      writeFileSync(`${process.env.TEST_HANG_FILE}.hangs`, '')
      hang()
    }
    return crc32(...parameters)
  }
  syncBuiltinESMExports()
}
