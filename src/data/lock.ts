import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import extensions from 'fs-native-extensions'
import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { isDiskFull } from '../base/durable-file.js'

/** `holder` is the process id in the lock file, which may belong to another container. */
export type Locking = { ok: true; release(): void } | { ok: false; holder?: number }

/** The file that a process locks to use a data directory. */
export const lockFile = 'lock'

/**
 * The file with the address of the server that holds the lock, such as `http://127.0.0.1:8787` (address.ts).
 */
export const addressFile = 'address'

/**
 * Locks a directory against every other process.
 *
 * The kernel releases the lock when the process ends for any reason, so no stale lock file exists and two
 * starts cannot both succeed. A process id in a file cannot do that: the id can be reused after kill -9, and
 * containers that share a volume do not see each other's processes. The id in the file is informational. The
 * file is never removed, or a second process could lock a new file while the first still holds the old one.
 * @throws Error of the file system, for example if it does not support locks
 */
export function lockDirectory(path: string): Locking {
  const file = join(path, lockFile)
  const fd = openSync(file, 'a+', 0o600)
  let locked = false
  try {
    if (!extensions.tryLock(fd)) return { ok: false, ...readHolder(file) }
    rmSync(join(path, addressFile), { force: true })
    writeHolder(fd)
    locked = true
  } finally {
    if (!locked) closeSync(fd)
  }
  return { ok: true, release: () => closeSync(fd) }
}

function writeHolder(fd: number): void {
  try {
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`)
  } catch (error) {
    // The id is informational, and another process may take the last block of a full disk.
    if (!isDiskFull(error)) throw error
  }
}

/** Returns the holder of a lock; undefined if it is free. To ask the kernel, takes the lock for a moment. */
export function lockHolder(path: string): { holder?: number } | undefined {
  const fd = openSync(join(path, lockFile), 'r+')
  try {
    return extensions.tryLock(fd) ? undefined : readHolder(join(path, lockFile))
  } finally {
    closeSync(fd)
  }
}

function readHolder(file: string): { holder?: number } {
  // On Windows a locked file cannot be read, so the id is missing there.
  try {
    const text = readBounded(file, limits.smallFileBytesMax).toString('utf8').trim()
    return /^\d{1,10}$/.test(text) ? { holder: Number(text) } : {}
  } catch {
    return {}
  }
}
