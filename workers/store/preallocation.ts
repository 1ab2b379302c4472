import { closeSync, fstatSync, openSync, statfsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError } from '../../src/base/durable-file.js'
import { tableSpecs } from './table-specs.js'
import type { WriteSet } from './write-set.js'
import { usedBytes, type Environment } from './environment.js'

/** The minimum of free space, for the work of an idle shard and before any write is accepted. */
const SPACE_BYTES_MIN = 2_097_152
/** The most bytes that are added in advance. */
const SPACE_BYTES = 4_194_304
const PAGE_BYTES = 4_096
/** The most bytes of a row: a page, and a part of the pages above it in the tree. */
const ROW_BYTES = 2 * PAGE_BYTES
/** Bytes of a record without its body: header, signature, index entries and its idempotent answer. */
const RECORD_BYTES = 1_024

/** With fewer free bytes beyond those of a commit, space is added in advance. */
const AMPLE_BYTES = 1_073_741_824
/** The next look is before all others could fill the disk by writing so many bytes a millisecond. */
const FILLED_BYTES_A_MS = 8_388_608
const LOOK_MS_MAX = 1_000

const zeros = Buffer.alloc(SPACE_BYTES)

/**
 * Ensures that the disk has space for the next commit.
 *
 * LMDB must never meet a full disk: if it fails to write a page, lmdb 3.5.6 writes past the end of its memory
 * (docs/upstream/lmdb-failed-write.md). If the disk does not have much free space, the next commit gets zeros
 * after the last page of the data file, which it then overwrites. Otherwise LMDB extends the file itself: so
 * each of these bytes is written once.
 *
 * LMDB ignores bytes after its last page. The committing thread writes the zeros between two commits, so they
 * overwrite no page.
 */
export class Preallocation {
  readonly #environment: Environment
  readonly #path: string
  readonly #ampleBytes: number
  readonly #fd: number
  #bytes: number
  #isAmpleUntilMs = -Infinity

  /** @param ampleBytes another limit in tests */
  constructor(path: string, environment: Environment, ampleBytes = AMPLE_BYTES) {
    this.#environment = environment
    this.#path = path
    this.#ampleBytes = ampleBytes
    this.#fd = openSync(join(path, 'data.mdb'), 'r+')
    this.#bytes = fstatSync(this.#fd).size
  }

  /**
   * Reserves space for the next writes.
   * @returns false if the disk is full
   */
  reserve(bytes = 0): boolean {
    const used = usedBytes(this.#environment)
    // LMDB extends the file itself if it writes past the reserved space.
    this.#bytes = Math.max(this.#bytes, used)
    const wanted = used + SPACE_BYTES_MIN + bytes
    if (this.#bytes >= wanted || this.#isAmple(wanted - this.#bytes)) return true
    try {
      const more = Math.max(wanted - this.#bytes, Math.min(SPACE_BYTES, used))
      for (let left = more; left > 0;) {
        const written = writeSync(this.#fd, zeros, 0, Math.min(left, SPACE_BYTES), this.#bytes)
        this.#bytes += written
        left -= written
      }
      return true
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return this.#bytes >= wanted
    }
  }

  /** Whether the disk has much more free space than these bytes. */
  #isAmple(bytes: number): boolean {
    const nowMs = performance.now()
    if (nowMs < this.#isAmpleUntilMs) return true
    const { bavail, bsize } = statfsSync(this.#path)
    const free = bavail * bsize - bytes
    if (free < this.#ampleBytes) return false
    this.#isAmpleUntilMs = nowMs + Math.min(LOOK_MS_MAX, free / FILLED_BYTES_A_MS)
    return true
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/** The most bytes that a write can need, in the data file and in the log. */
export interface SpaceNeed {
  store: number
  log: number
}

/**
 * The space for the largest write of one record: the first one of a new agent, with its idempotent answer.
 */
export function spaceForWrite(bodyBytes: number): SpaceNeed {
  const log = 2 * (2 * bodyBytes + RECORD_BYTES)
  return { store: 4 * ROW_BYTES + log, log }
}

/** The space for imported records. @param bytes of all records; each body is stored once */
export function spaceForImport(records: number, bytes: number): SpaceNeed {
  const log = bytes + (records + 4) * RECORD_BYTES
  // A large body has separate pages, of which all but one are full.
  return { store: 4 * ROW_BYTES + log + Math.min(bytes, records * PAGE_BYTES), log }
}

/**
 * The most bytes by which a flush of `bytes` bytes of changes can extend the file, for any number of rows:
 * LMDB copies each page at most once, and new pages are at least half full.
 */
export function flushBytesMax(environment: Environment, bytes: number): number {
  return usedBytes(environment) + 3 * bytes
}

/**
 * The same for replayed changes. It is at most the space that was reserved when they were written, so that a
 * start on a full disk succeeds.
 */
export function replayBytesMax(
  environment: Environment,
  { changes, bytes }: { changes: number; bytes: number },
): number {
  return Math.min(changes * PAGE_BYTES + 2 * bytes, flushBytesMax(environment, bytes))
}

/** The most bytes by which a commit group can extend the file: LMDB copies each page that it changes. */
export function groupBytesMax(group: WriteSet): number {
  const { records, imported, touched, newAgents, agentChanges, changes } = group
  let rows = touched.size + newAgents.size + agentChanges.size
  for (const spec of tableSpecs) rows += spec.rows(changes)
  let bytes = rows * ROW_BYTES
  // A body can have separate pages, and be copied into an idempotent answer.
  for (const { body } of records) bytes += 2 * body.length + RECORD_BYTES
  for (const { body } of imported) bytes += body.length + Math.min(body.length, PAGE_BYTES) + RECORD_BYTES
  return bytes
}
