import { closeSync, fdatasyncSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { percentile } from '../statistics.mjs'

const FILE_BYTES = 4_194_304
/**
 * Linux caches one large write as one piece and syncs a piece of a megabyte slower than a page, so zeros are
 * written by page.
 */
const ZERO_BYTES = 4_096
const WRITE_BYTES = 1_024

/**
 * The ceiling of a lone durable write: the time of a 1 KiB write and its `fdatasync`, one after the other, in
 * a file of zeros that is already written and synced, so that no metadata changes.
 * @param {{directory: string, durationMs: number}} options `directory`: on the disk of the store
 * @returns {{p50Ms: number, p99Ms: number}}
 */
export function syncTimes({ directory, durationMs }) {
  const file = join(directory, 'sync-times')
  const fd = openSync(file, 'w')
  try {
    const zeros = Buffer.alloc(ZERO_BYTES)
    for (let at = 0; at < FILE_BYTES; at += ZERO_BYTES) writeSync(fd, zeros, 0, ZERO_BYTES, at)
    fsyncSync(fd)
    const times = timesOf(fd, durationMs)
    return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
  } finally {
    closeSync(fd)
    rmSync(file)
  }
}

function timesOf(fd, durationMs) {
  const bytes = randomBytes(WRITE_BYTES)
  const times = []
  const startMs = performance.now()
  let atMs = startMs
  while (atMs - startMs < durationMs) {
    writeSync(fd, bytes, 0, WRITE_BYTES, (times.length * WRITE_BYTES) % FILE_BYTES)
    fdatasyncSync(fd)
    const nowMs = performance.now()
    times.push(nowMs - atMs)
    atMs = nowMs
  }
  return times
}
