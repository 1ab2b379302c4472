import { open } from 'node:fs/promises'
import { pipeline } from 'node:stream'
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

/** The bytes of a stream, unpacked where they begin as gzip does. @throws what the stream ends with */
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

/** Chunks, the first of which is long enough to know gzip by, where there are as many bytes: a pipe may begin with one. */
async function* withHead(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of source) {
    const bytes: Buffer = head === undefined ? chunk : Buffer.concat([head, chunk])
    head = head === undefined || bytes.length >= MAGIC_BYTES ? undefined : bytes
    if (head === undefined) yield bytes
  }
  if (head !== undefined && head.length > 0) yield head
}
