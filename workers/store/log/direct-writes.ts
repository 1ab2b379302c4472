import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { steadyClock } from '../../../src/base/clock.js'
import { isFileSystemError } from '../../../src/base/durable-file.js'
import { DiskPace } from './disk-pace.js'

/** Segments up to this length are laid out in memory that the disk can take them from, bytes. */
const MEMORY_BYTES = 1_048_576
const WASM_PAGE_BYTES = 65_536

/**
 * Opens a file for writes past the cache of the operating system (open(2), O_DIRECT).
 * @returns undefined where the file system, or the operating system, has none
 */
export function openDirect(path: string): number | undefined {
  if (!('O_DIRECT' in constants)) return undefined
  try {
    return openSync(path, constants.O_RDWR | constants.O_DIRECT)
  } catch (error) {
    if (isUnaligned(error)) return undefined
    throw error
  }
}

/** A file with both ways into it. */
export interface DirectFile {
  fd: number
  /** For writes past the cache; undefined where there are none. */
  direct: number | undefined
}

/**
 * Writes segments straight to the disk: the cache writes whole pages, so that a segment of one record takes four times
 * as many bytes there, and a third more processor time. The thread waits for such a write, so a disk that takes long is
 * written through the cache, whose bytes reach it with a sync that somebody else waits for.
 */
export class DirectWrites {
  readonly #pace: DiskPace

  constructor(pace = new DiskPace()) {
    this.#pace = pace
  }

  /** Memory for a segment that is to be written straight to a file; undefined where it goes through the cache. */
  memoryFor(file: DirectFile, bytes: number): Buffer | undefined {
    const possible = file.direct !== undefined && bytes <= MEMORY_BYTES
    return possible && this.#pace.waits() ? alignedMemory() : undefined
  }

  /** Writes bytes that lie in such memory. @throws Error when it is not known what of them is there */
  write(file: DirectFile, bytes: Buffer, offset: number): void {
    const sinceMs = steadyClock()
    let at = 0
    try {
      while (file.direct !== undefined && at < bytes.length)
        at += writeSync(file.direct, bytes, at, bytes.length - at, offset + at)
    } catch (error) {
      // A disk with larger sectors than segments are multiples of, or a write that ended within a sector.
      if (!isUnaligned(error)) throw error
      closeDirect(file)
      writeThroughCache(file, bytes.subarray(at), offset + at)
    }
    this.#pace.took(steadyClock() - sinceMs)
  }
}

/** Writes bytes that are on disk after the next sync of the file. */
export function writeThroughCache({ fd }: Pick<DirectFile, 'fd'>, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, offset + at)
}

/** Closes the way past the cache. */
export function closeDirect(file: DirectFile): void {
  if (file.direct !== undefined) closeSync(file.direct)
  file.direct = undefined
}

let memoryOfThread: Buffer | undefined

/**
 * Memory that a disk can take bytes from: its address is a multiple of the disk's sectors, as that of every memory of
 * WebAssembly. A thread has one, since a write is over when it returns and each takes ten GiB of addresses.
 */
function alignedMemory(): Buffer {
  memoryOfThread ??= Buffer.from(new WebAssembly.Memory({ initial: MEMORY_BYTES / WASM_PAGE_BYTES }).buffer)
  return memoryOfThread
}

function isUnaligned(error: unknown): boolean {
  return isFileSystemError(error) && error.code === 'EINVAL'
}
