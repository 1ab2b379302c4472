import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

/** How long a file is, and its SHA-256, 64 hex digits. */
export interface FileDigest {
  bytes: number
  sha256: string
}

/** What the reading of a file is told by and tells. */
export interface FileReading {
  signal: AbortSignal
  /** Told how many bytes were read since. */
  onBytes(bytes: number): void
}

/** Bytes that are read at once. */
const CHUNK_BYTES = 1_048_576

/** Reads a whole file. @throws Error of the file system, or when `signal` aborts */
export async function digestFile(path: string, reading: FileReading): Promise<FileDigest> {
  return take(path, reading, () => Promise.resolve())
}

/**
 * Copies a file to where there is none, mode 0600, and returns when its bytes are on disk.
 * @throws Error of the file system, or when `signal` aborts; what was written by then is left
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
  { signal, onBytes }: FileReading,
  use: (bytes: Buffer) => Promise<void>,
): Promise<FileDigest> {
  const source = await open(path, 'r')
  try {
    const hash = createHash('sha256')
    const buffer = Buffer.alloc(CHUNK_BYTES)
    let bytes = 0
    for (;;) {
      signal.throwIfAborted()
      const { bytesRead } = await source.read(buffer, 0, CHUNK_BYTES)
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
