import { closeSync, fsyncSync, openSync } from 'node:fs'

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
