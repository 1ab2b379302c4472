import { randomUUID } from 'node:crypto'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../../../base/assert.js'
import type { CheckedRecords } from '../../../protocol/import-messages.js'
import type { BodyMemory } from '../../../base/gathered-bytes.js'
import { partHeadBytes, partLengths, partOf } from '../../../protocol/import-parts.js'

/**
 * The file in which the checked records of one import wait for the end of their export; written by a reader
 * of the pool.
 */
export class ImportStage {
  readonly path: string

  constructor(folder: string) {
    this.path = join(folder, randomUUID())
  }

  /** Reads the written parts in order; stops if the memory limit has ended the upload. */
  async *parts(memory: BodyMemory): AsyncGenerator<CheckedRecords, undefined, undefined> {
    const file = await open(this.path, 'r')
    try {
      for (let at = 0; ;) {
        const head = await bytesAt(file, at, partHeadBytes)
        if (head.length === 0) return undefined
        const { metadata: effectsLength, chunk: chunkLength } = partLengths(head)
        const effectsAt = at + partHeadBytes
        const chunkAt = effectsAt + effectsLength
        if (!memory.reserve(effectsLength + chunkLength)) return undefined
        try {
          yield partOf(
            await bytesAt(file, effectsAt, effectsLength),
            await bytesAt(file, chunkAt, chunkLength),
          )
        } finally {
          memory.release(effectsLength + chunkLength)
        }
        at = chunkAt + chunkLength
      }
    } finally {
      await file.close()
    }
  }

  async remove(): Promise<void> {
    await Promise.all([rm(this.path, { force: true }), rm(`${this.path}.index`, { force: true })])
  }
}

/** Reads `length` bytes; none at the end of the file. */
async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  let read = 0
  while (read < length) {
    const { bytesRead } = await file.read(bytes, read, length - read, at + read)
    if (bytesRead === 0) break
    read += bytesRead
  }
  assert(read === 0 || read === length, 'a written part is complete')
  return bytes.subarray(0, read)
}
