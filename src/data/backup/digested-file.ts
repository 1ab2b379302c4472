import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'

/** The size of a file and its SHA-256, 64 hex digits. */
export interface FileDigest {
  bytes: number
  sha256: string
}

export interface FileReading {
  signal: AbortSignal
  /** Called with the number of bytes read since the last call. */
  onBytes(bytes: number): void
  /**
   * For an untrusted file: it must be a regular file and not a link, and at most one more byte than this is
   * read.
   */
  bytesMax?: number
}

/** Bytes per read. */
const CHUNK_BYTES = 1_048_576

/** Returns the digest of a file. @throws Error of the file system, or when `signal` aborts */
export async function digestFile(path: string, reading: FileReading): Promise<FileDigest> {
  return readAll(path, reading, () => Promise.resolve())
}

/**
 * Copies a file to a new path with mode 0600; its bytes are on disk when this returns.
 * @throws Error of the file system, or when `signal` aborts; a partial file is left
 */
export async function copyFile(from: string, to: string, reading: FileReading): Promise<FileDigest> {
  const target = await open(to, 'wx', 0o600)
  try {
    const digest = await readAll(from, reading, async (bytes) => {
      await target.writeFile(bytes)
    })
    await target.sync()
    return digest
  } finally {
    await target.close()
  }
}

async function readAll(
  path: string,
  { signal, onBytes, bytesMax }: FileReading,
  use: (bytes: Buffer) => Promise<void>,
): Promise<FileDigest> {
  const source = await open(path, bytesMax === undefined ? 'r' : strictFlags)
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

/** Does not follow links or wait for a named pipe. Windows has neither. */
const strictFlags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/**
 * Reads a small, untrusted file.
 * @returns undefined if it is not a regular file, or has more than `bytesMax` bytes
 * @throws Error of the file system
 */
export function readSmall(path: string, bytesMax: number): Buffer | undefined {
  const fd = openSync(path, strictFlags)
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
