import { closeSync, openSync, readSync } from 'node:fs'

/**
 * Reads a file of at most `bytesMax` bytes. The limit matters because a path can name an endless pipe or
 * device.
 * @throws Error of the file system; EFBIG when the file is larger
 */
export function readBounded(path: string, bytesMax: number): Buffer {
  const fd = openSync(path, 'r')
  try {
    const buffer = Buffer.alloc(bytesMax + 1)
    let bytes = 0
    for (let read = -1; read !== 0 && bytes <= bytesMax; bytes += read) {
      read = readSync(fd, buffer, bytes, buffer.length - bytes, null)
    }
    if (bytes <= bytesMax) return buffer.subarray(0, bytes)
  } finally {
    closeSync(fd)
  }
  const error = new Error(`EFBIG: expected at most ${bytesMax} bytes, read '${path}'`)
  throw Object.assign(error, { code: 'EFBIG', syscall: 'read', path })
}
