import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { steadyClock } from '../../../src/base/clock.js'
import { isFileSystemError } from '../../../src/base/durable-file.js'
import { DiskPace } from './disk-pace.js'

/** Segments up to this length can be written past the cache, bytes. */
const MEMORY_BYTES = 1_048_576
const WASM_PAGE_BYTES = 65_536

/**
 * Opens a file for writes past the page cache that are on disk when they return (open(2), O_DIRECT and
 * O_DSYNC): one call in place of a write and a sync.
 * @returns undefined if the file system or the operating system does not support it
 */
export function openDirect(path: string): number | undefined {
  if (!('O_DIRECT' in constants)) return undefined
  try {
    return openSync(path, constants.O_RDWR | constants.O_DIRECT | constants.O_DSYNC)
  } catch (error) {
    if (isUnaligned(error)) return undefined
    throw error
  }
}

/** A file that can be written through the page cache, and perhaps past it. */
export interface DirectFile {
  fd: number
  /** File descriptor for writes past the cache; undefined if these are not possible. */
  direct: number | undefined
}

/**
 * Writes segments directly to the disk. The cache writes whole pages, which takes four times the bytes and a
 * third more CPU time for a segment of one record. But a direct write blocks the thread, so segments for a
 * slow disk go through the cache and are synced by another thread.
 */
export class DirectWrites {
  readonly #pace: DiskPace

  constructor(pace = new DiskPace()) {
    this.#pace = pace
  }

  /**
   * Aligned memory for a segment that is to be written directly; undefined if it should go through the cache.
   */
  memoryFor(file: DirectFile, bytes: number): Buffer | undefined {
    const possible = file.direct !== undefined && bytes <= MEMORY_BYTES
    return possible && this.#pace.shouldWait() ? alignedMemory() : undefined
  }

  /**
   * Writes bytes in aligned memory.
   * @returns whether they are on disk; otherwise they are after the next sync of the file
   * @throws Error if it is unknown how much of them was written
   */
  write(file: DirectFile, bytes: Buffer, offset: number): boolean {
    const sinceMs = steadyClock()
    let at = 0
    try {
      while (file.direct !== undefined && at < bytes.length)
        at += writeSync(file.direct, bytes, at, bytes.length - at, offset + at)
    } catch (error) {
      // The disk has larger sectors than segments are aligned to, or a write ended within a sector.
      if (!isUnaligned(error)) throw error
      closeDirect(file)
      writeThroughCache(file, bytes.subarray(at), offset + at)
    }
    this.#pace.recordSync(steadyClock() - sinceMs)
    return file.direct !== undefined
  }
}

/** Writes bytes through the page cache; they are on disk after the next sync of the file. */
export function writeThroughCache({ fd }: Pick<DirectFile, 'fd'>, bytes: Buffer, offset: number): void {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, offset + at)
}

/** Closes the descriptor for writes past the cache. */
export function closeDirect(file: DirectFile): void {
  if (file.direct !== undefined) closeSync(file.direct)
  file.direct = undefined
}

let threadMemory: Buffer | undefined

/**
 * Memory for direct writes, whose address must be a multiple of the disk's sectors; that of a WebAssembly
 * memory is. Each thread has only one, because each reserves ten GiB of address space, and writes do not
 * overlap.
 */
function alignedMemory(): Buffer {
  threadMemory ??= Buffer.from(new WebAssembly.Memory({ initial: MEMORY_BYTES / WASM_PAGE_BYTES }).buffer)
  return threadMemory
}

function isUnaligned(error: unknown): boolean {
  return isFileSystemError(error) && error.code === 'EINVAL'
}
