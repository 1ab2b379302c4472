import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'

/** Bytes by which gzip is known (RFC 1952, 2.3.1). */
const MAGIC_BYTES = 2

/** Whether bytes begin as gzip does. JSON cannot. */
function beginsAsGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** Whether a file begins as gzip does, whatever its name. @throws Error of the file system */
export async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC_BYTES))
    return beginsAsGzip(buffer.subarray(0, bytesRead))
  } finally {
    await handle.close()
  }
}

/** A stream that is unpacked where it begins as gzip does. @throws what the stream ends with before its first bytes */
export async function unpacked(source: Readable): Promise<Readable> {
  let head: Buffer | null
  do {
    await once(source, 'readable')
    head = source.read(MAGIC_BYTES)
    // A pipe may begin with a single byte.
  } while (head === null && source.readableLength > 0)
  if (head === null) return source
  source.unshift(head)
  return beginsAsGzip(head) ? pipeline(source, createGunzip(), () => {}) : source
}
