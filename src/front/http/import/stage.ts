import { randomUUID } from 'node:crypto'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { assert } from '../../../base/assert.js'
import type { CheckedRecords } from '../../../protocol/import-messages.js'
import type { BodyMemory } from '../../../base/gathered-bytes.js'
import { partHeadBytes, partLengths, partOf } from '../../../protocol/import-parts.js'

/** The file in which the checked records of one import wait for the end of their export. A reader of the pool writes it. */
export class ImportStage {
  readonly path: string

  constructor(folder: string) {
    this.path = join(folder, randomUUID())
  }

  /** Reads the parts that were written, in their order; no more of them once there is no memory for the body. */
  async *parts(memory: BodyMemory): AsyncGenerator<CheckedRecords, undefined, undefined> {
    const file = await open(this.path, 'r')
    try {
      for (let at = 0; ;) {
        const head = await bytesAt(file, at, partHeadBytes)
        if (head.length === 0) return undefined
        const { told, chunk } = partLengths(head)
        const toldAt = at + partHeadBytes
        if (!memory.add(told + chunk)) return undefined
        try {
          yield partOf(await bytesAt(file, toldAt, told), await bytesAt(file, toldAt + told, chunk))
        } finally {
          memory.give(told + chunk)
        }
        at = toldAt + told + chunk
      }
    } finally {
      await file.close()
    }
  }

  /** Removes the file. */
  async remove(): Promise<void> {
    await rm(this.path, { force: true })
  }
}

/** Reads so many bytes; none at the end of the file. */
async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length)
  let read = 0
  while (read < length) {
    const { bytesRead } = await file.read(bytes, read, length - read, at + read)
    if (bytesRead === 0) break
    read += bytesRead
  }
  assert(read === 0 || read === length, 'a part that was written is whole')
  return bytes.subarray(0, read)
}
