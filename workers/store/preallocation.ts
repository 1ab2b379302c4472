import { closeSync, fstatSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError } from '../../src/base/durable-file.js'
import type { WriteSet } from './write-set.js'
import { usedBytes, type Environment } from './environment.js'

/** Bytes of room that are there before anything is decided, and for the work of an idle shard. */
const ROOM_BYTES_MIN = 2_097_152
/** How many bytes are added at once when little is written. */
const ROOM_BYTES = 4_194_304
const PAGE_BYTES = 4_096
/** Bytes that a row can take: a page, and a part of the pages above it in the tree. */
const ROW_BYTES = 2 * PAGE_BYTES
/** Bytes of a record beside its body: header, signature, entries in the indexes, and its idempotent answer. */
const RECORD_BYTES = 1_024

const zeros = Buffer.alloc(ROOM_BYTES)

/**
 * Keeps zeros after the last page of a data file, at least as many as the next commit can need.
 *
 * LMDB must never meet a full disk: when writing a page fails, lmdb 3.5.6 writes past the end of its memory
 * (docs/upstream/lmdb-failed-write.md). And a small commit into blocks that the file already has is on disk a third
 * sooner than one that makes the file longer, for which the file system has to commit metadata, too.
 *
 * LMDB ignores what lies after its last page. The zeros are written by the thread that commits and between two commits,
 * so no page is overwritten.
 */
export class Preallocation {
  readonly #environment: Environment
  readonly #fd: number
  #bytes: number

  constructor(path: string, environment: Environment) {
    this.#environment = environment
    this.#fd = openSync(join(path, 'data.mdb'), 'r+')
    this.#bytes = fstatSync(this.#fd).size
  }

  /**
   * Makes room for the next writes.
   * @returns false when the disk has no room for it
   */
  reserve(bytes = 0): boolean {
    const used = usedBytes(this.#environment)
    // LMDB makes the file longer by itself only if it writes past this room.
    this.#bytes = Math.max(this.#bytes, used)
    const wanted = used + ROOM_BYTES_MIN + bytes
    if (this.#bytes >= wanted) return true
    try {
      const more = Math.max(wanted - this.#bytes, Math.min(ROOM_BYTES, used))
      for (let left = more; left > 0;) {
        const written = writeSync(this.#fd, zeros, 0, Math.min(left, ROOM_BYTES), this.#bytes)
        this.#bytes += written
        left -= written
      }
      return true
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return this.#bytes >= wanted
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/** Bytes that a write can need: in the data file, and in the log. */
export interface Room {
  store: number
  log: number
}

/** The most that a write of one record with such a body can need: of a new agent, with its idempotent answer. */
export function roomOfWrite(bodyBytes: number): Room {
  const log = 2 * (2 * bodyBytes + RECORD_BYTES)
  return { store: 4 * ROW_BYTES + log, log }
}

/** The same for so many imported records with so many bytes together; their bodies are stored once each. */
export function roomOfImport(records: number, bytes: number): Room {
  const log = bytes + (records + 4) * RECORD_BYTES
  // A large body has pages of its own, of which all but one are full.
  return { store: 4 * ROW_BYTES + log + Math.min(bytes, records * PAGE_BYTES), log }
}

/**
 * The most bytes by which a flush of changes that take so many bytes can make the file longer, however many rows they
 * are: LMDB copies each page at most once, and new pages are half full at the least.
 */
export function flushBytesMax(environment: Environment, bytes: number): number {
  return usedBytes(environment) + 3 * bytes
}

/**
 * The same for changes that the log has and the store has not: no more than was there for them when they were written,
 * so that a start on a full disk finds room.
 */
export function replayBytesMax(
  environment: Environment,
  { changes, bytes }: { changes: number; bytes: number },
): number {
  return Math.min(changes * PAGE_BYTES + 2 * bytes, flushBytesMax(environment, bytes))
}

/** The most bytes by which a group can make the file longer: LMDB copies each page that it changes. */
export function groupBytesMax(group: WriteSet): number {
  const { records, imported, touched, newAgents, agentChanges, proposals, erasures, zoneChanges } = group
  const { edges, mutations, answers, publicKeys, apiKeys, organisms, authRows, revocations, mails } = group
  const rows = [touched, newAgents, agentChanges, proposals, edges, answers, publicKeys, apiKeys, organisms]
  const lists = [erasures, zoneChanges, mutations, revocations, group.pastProposals]
  let bytes = 0
  for (const map of [...rows, authRows, mails]) bytes += map.size * ROW_BYTES
  for (const list of lists) bytes += list.length * ROW_BYTES
  // A body can have pages of its own, and be copied into an idempotent answer.
  for (const { body } of records) bytes += 2 * body.length + RECORD_BYTES
  for (const { body } of imported) bytes += body.length + Math.min(body.length, PAGE_BYTES) + RECORD_BYTES
  return bytes
}
