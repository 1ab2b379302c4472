import { closeSync, fstatSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError } from '../../src/durable-file.js'
import type { Environment } from './environment.js'

/** Commits between two looks at how much room is left. */
const COMMITS_A_LOOK = 8
/** What is added at once, bytes. */
const ROOM_BYTES = 4_194_304

const zeros = Buffer.alloc(ROOM_BYTES)

/**
 * Keeps some zeros behind the last page of a data file. A small commit into blocks that the file has already is on disk
 * a third sooner than one that makes the file longer, for which the file system commits something of its own as well.
 *
 * LMDB passes over what lies behind its last page. It is written by the thread that commits and between two commits, so
 * that no page is written over.
 */
export class FileRoom {
  readonly #environment: Environment
  #fd: number | undefined
  #commits = 0
  #usedBytes: number

  constructor(path: string, environment: Environment) {
    this.#environment = environment
    this.#usedBytes = usedBytes(environment)
    this.#fd = openSync(join(path, 'data.mdb'), 'r+')
  }

  /** Takes note of a commit, and makes room now and then. */
  committed(): void {
    if (this.#fd === undefined || ++this.#commits % COMMITS_A_LOOK !== 0) return
    const used = usedBytes(this.#environment)
    const grown = used - this.#usedBytes
    this.#usedBytes = used
    // Where much is written at once, the length is little of what it costs.
    if (grown === 0 || grown > ROOM_BYTES / 2) return
    try {
      const { size } = fstatSync(this.#fd)
      if (size - used < ROOM_BYTES / 2) writeSync(this.#fd, zeros, 0, ROOM_BYTES, size)
    } catch (error) {
      // A full disk, say. It is for the commits to fail by; they may still find pages that are free.
      if (!isFileSystemError(error)) throw error
      this.close()
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }
}

function usedBytes({ root }: Environment): number {
  const { lastPageNumber, pageSize } = root.getStats() as { lastPageNumber: number; pageSize: number }
  return (lastPageNumber + 1) * pageSize
}
