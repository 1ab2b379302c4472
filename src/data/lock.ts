import { closeSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import extensions from 'fs-native-extensions'
import { limits } from '../base/limits/limits.js'
import { readBounded } from '../base/bounded-file.js'
import { isLackOfSpace } from '../base/durable-file.js'

/** What `lockDirectory` answers. `holder` is the process id that the lock file names, which may be of another container. */
export type Locking = { ok: true; release(): void } | { ok: false; holder?: number }

const FILE = 'lock'

/** The file with the address of the server that has the lock, such as `http://127.0.0.1:8787` (address.ts). */
export const addressFile = 'address'

/**
 * Locks a directory against every other process.
 *
 * The kernel holds the lock and drops it when the process ends, however it ends: no file is left that a later start
 * would have to judge, and two starts at once cannot both win. A process id in a file cannot do that: after kill -9
 * another process can soon have the id, and two containers that share a volume do not see each other's processes. The
 * id in the file is for people only. The file is never removed: otherwise a second process could lock a new file while
 * the first still holds the old one.
 * @throws Error of the file system, for example if it does not support locks
 */
export function lockDirectory(path: string): Locking {
  const file = join(path, FILE)
  const fd = openSync(file, 'a+', 0o600)
  let kept = false
  try {
    if (!extensions.tryLock(fd)) return { ok: false, ...readHolder(file) }
    rmSync(join(path, addressFile), { force: true })
    noteHolder(fd)
    kept = true
  } finally {
    if (!kept) closeSync(fd)
  }
  return { ok: true, release: () => closeSync(fd) }
}

function noteHolder(fd: number): void {
  try {
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`)
  } catch (error) {
    // The id is for people only, and another process may take the last block of a full disk.
    if (!isLackOfSpace(error)) throw error
  }
}

/**
 * Who holds the lock of a directory, or undefined when nobody does. Looking takes the lock for a moment, since that
 * is the only way to ask the kernel.
 */
export function lockHolder(path: string): { holder?: number } | undefined {
  const fd = openSync(join(path, FILE), 'r+')
  try {
    return extensions.tryLock(fd) ? undefined : readHolder(join(path, FILE))
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
