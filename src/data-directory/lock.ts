import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import extensions from 'fs-native-extensions'
import { limits } from '../base/limits.js'
import { readBounded } from '../base/bounded-file.js'

/** What `lockDirectory` answers. `holder` is the process id that the lock file names, which may be of another container. */
export type Locking = { ok: true; release(): void } | { ok: false; holder?: number }

const FILE = 'lock'

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
  let locked = false
  try {
    locked = extensions.tryLock(fd)
    if (!locked) return { ok: false, ...readHolder(file) }
    ftruncateSync(fd)
    writeSync(fd, `${process.pid}\n`)
  } finally {
    if (!locked) closeSync(fd)
  }
  return { ok: true, release: () => closeSync(fd) }
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
