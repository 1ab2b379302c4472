import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { limits } from './limits/limits.js'
import { readBounded } from './bounded-file.js'

/** The end of the name of an unfinished file. A start removes such files. */
export const unfinishedSuffix = '.tmp'

/**
 * Writes a file that exists completely or not at all, whenever the machine stops or the disk is full, and is on disk
 * when this returns. Mode 0600.
 * @throws Error of the file system
 */
export function writeDurably(file: string, text: string): void {
  const unfinished = file + unfinishedSuffix
  try {
    const fd = openSync(unfinished, 'w', 0o600)
    try {
      writeFileSync(fd, text)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(unfinished, file)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
  syncDirectory(dirname(file))
}

/**
 * Makes a directory where there is none, and those above it, mode 0700, its name on disk. One by one: Node's recursive
 * `mkdirSync` tries for ever where a file system refuses a name by ENOENT, as /proc does.
 * @returns whether it was made
 * @throws Error of the file system
 */
export function makeDirectory(path: string): boolean {
  const above = dirname(path)
  if (isDirectory(path)) return false
  if (above !== path) makeDirectory(above)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it at this moment.
    if (isFileSystemError(error) && error.code === 'EEXIST' && isDirectory(path)) return false
    throw error
  }
  syncDirectory(above)
  return true
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** The text of a small file, or undefined when there is no such file. @throws Error of the file system, EFBIG too */
export function readIfThere(file: string): string | undefined {
  try {
    return readBounded(file, limits.smallFileBytesMax).toString('utf8')
  } catch (error) {
    if (isFileSystemError(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether an error comes from the file system rather than from a bug. */
export function isFileSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}

/** Whether the disk, or the quota of this user, has no space left. */
export function isLackOfSpace(error: unknown): boolean {
  return isFileSystemError(error) && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}

/** Whether nothing could be opened because this process, or the machine, has as many files open as it may. */
export function isLackOfDescriptors(error: unknown): boolean {
  return isFileSystemError(error) && (error.code === 'EMFILE' || error.code === 'ENFILE')
}

/** Flushes the names in a directory to disk. Windows has no such call and does not need it. */
export function syncDirectory(path: string): void {
  if (process.platform === 'win32') return
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
