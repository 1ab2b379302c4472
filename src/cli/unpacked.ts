import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'

/** Length of the magic number of gzip (RFC 1952, 2.3.1). */
const MAGIC_BYTES = 2

/** Whether bytes begin with the magic number of gzip. JSON cannot. */
function beginsAsGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/** Whether a file is gzipped, by its first bytes. @throws Error of the file system */
export async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC_BYTES))
    return beginsAsGzip(buffer.subarray(0, bytesRead))
  } finally {
    await handle.close()
  }
}

/**
 * The bytes of a stream, decompressed if the stream is gzipped.
 * @throws the error of the stream, or of a broken gzip
 */
export async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const chunks = withHead(source)
  const { value: head } = await chunks.next()
  if (head === undefined) return
  async function* whole(first: Buffer): AsyncGenerator<Buffer, void> {
    yield first
    yield* chunks
  }
  yield* beginsAsGzip(head) ? pipeline(whole(head), createGunzip(), () => {}) : whole(head)
}

/** Joins chunks until the first one holds the magic number: a pipe may deliver a single byte first. */
async function* withHead(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of source) {
    const bytes: Buffer = head === undefined ? chunk : Buffer.concat([head, chunk])
    head = head === undefined || bytes.length >= MAGIC_BYTES ? undefined : bytes
    if (head === undefined) yield bytes
  }
  if (head !== undefined && head.length > 0) yield head
}
