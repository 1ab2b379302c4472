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

/** Suffix of an unfinished file. The server removes such files when it starts. */
export const unfinishedSuffix = '.tmp'

/**
 * Writes a file atomically, with mode 0600: after a crash or on a full disk it exists completely or not at
 * all. It is synced to disk when this returns.
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
 * Creates a directory and its missing parents, with mode 0700, and syncs their names to disk. Node's
 * recursive `mkdirSync` is not used: it loops forever on a file system that answers ENOENT, such as /proc.
 * @returns whether the directory was created
 * @throws Error of the file system
 */
export function makeDirectory(path: string): boolean {
  const above = dirname(path)
  if (isDirectory(path)) return false
  if (above !== path) makeDirectory(above)
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it in the same moment.
    if (isFileSystemError(error) && error.code === 'EEXIST' && isDirectory(path)) return false
    throw error
  }
  syncDirectory(above)
  return true
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/**
 * The text of a small file; undefined when the file does not exist.
 * @throws Error of the file system, or EFBIG
 */
export function readIfExists(file: string): string | undefined {
  try {
    return readBounded(file, limits.smallFileBytesMax).toString('utf8')
  } catch (error) {
    if (isFileSystemError(error) && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Whether an error comes from the file system, not from a bug. */
export function isFileSystemError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string'
}

/** Whether the disk, or the disk quota of the user, is full. */
export function isDiskFull(error: unknown): boolean {
  return isFileSystemError(error) && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}

/** Whether the process or the machine has reached its limit of open files. */
export function isFileLimitReached(error: unknown): boolean {
  return isFileSystemError(error) && (error.code === 'EMFILE' || error.code === 'ENFILE')
}

/** Syncs the entries of a directory to disk. Windows neither has nor needs such a call. */
export function syncDirectory(path: string): void {
  if (process.platform === 'win32') return
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
