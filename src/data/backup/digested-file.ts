import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** How long a file is, and its SHA-256, 64 hex digits. */
export interface FileDigest {
  bytes: number
  sha256: string
}

/** Options of reading a file. */
export interface FileReading {
  signal: AbortSignal
  /** Called with the number of bytes read since the last call. */
  onBytes(bytes: number): void
  /**
   * For a file of somebody else: it must be a regular file and not a link, and at most one byte more than this is read.
   */
  bytesMax?: number
}

/** Bytes that are read at once. */
const CHUNK_BYTES = 1_048_576

/** Reads a whole file. @throws Error of the file system, or when `signal` aborts */
export async function digestFile(path: string, reading: FileReading): Promise<FileDigest> {
  return take(path, reading, () => Promise.resolve())
}

/**
 * Copies a file to where there is none, mode 0600, and returns when its bytes are on disk.
 * @throws Error of the file system, or when `signal` aborts; a partly written file is left
 */
export async function copyFile(from: string, to: string, reading: FileReading): Promise<FileDigest> {
  const target = await open(to, 'wx', 0o600)
  try {
    const digest = await take(from, reading, async (bytes) => {
      await target.writeFile(bytes)
    })
    await target.sync()
    return digest
  } finally {
    await target.close()
  }
}

async function take(
  path: string,
  { signal, onBytes, bytesMax }: FileReading,
  use: (bytes: Buffer) => Promise<void>,
): Promise<FileDigest> {
  const source = await open(path, bytesMax === undefined ? 'r' : strictly)
  try {
    if (bytesMax !== undefined && !(await source.stat()).isFile())
      throw new Error(`Expected ${path} to be a regular file`)
    const endsAt = bytesMax === undefined ? Number.POSITIVE_INFINITY : bytesMax + 1
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(CHUNK_BYTES)
    let bytes = 0
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await source.read(buffer, 0, Math.min(CHUNK_BYTES, endsAt - bytes))
      if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') }
      const chunk = buffer.subarray(0, bytesRead)
      hash.update(chunk)
      await use(chunk)
      bytes += bytesRead
      onBytes(bytesRead)
    }
  } finally {
    await source.close()
  }
}

/** Follows no link, and does not wait at a named pipe. Windows has neither. */
const strictly = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Reads a small file of somebody else.
 * @returns undefined when it is not a regular file, or has more than `bytesMax` bytes
 * @throws Error of the file system
 */
export function readSmall(path: string, bytesMax: number): Buffer | undefined {
  const fd = openSync(path, strictly)
  try {
    if (!fstatSync(fd).isFile()) return undefined
    const buffer = Buffer.alloc(bytesMax + 1)
    let bytes = 0
    for (let read = -1; read !== 0 && bytes <= bytesMax; bytes += read) {
      read = readSync(fd, buffer, bytes, buffer.length - bytes, null)
    }
    return bytes > bytesMax ? undefined : buffer.subarray(0, bytes)
  } finally {
    closeSync(fd)
  }
}
