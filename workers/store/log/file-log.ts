import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { assert } from '../../../src/base/assert.js'
import {
  isFileSystemError,
  isFileLimitReached,
  makeDirectory,
  unfinishedSuffix,
  syncDirectory,
} from '../../../src/base/durable-file.js'
import { DirectWrites, closeDirect, openDirect, writeThroughCache, type DirectFile } from './direct-writes.js'
import { decodeChanges } from './row-change.js'
import {
  SECTOR_BYTES,
  contentOf,
  decodeSegment,
  encodeSegment,
  segmentBytes,
  type Segment,
  type SegmentContent,
  type SegmentKind,
  type SegmentId,
} from './segment.js'
import type { LogSegment, SegmentLog } from './segment-log.js'

/** Bytes of the first file of a log. Each further file is twice as long as the longest, up to the maximum. */
const FILE_BYTES_MIN = 262_144
const FILE_BYTES_MAX = 16_777_216
/**
 * Bytes of one write when a file is filled with zeros. Linux caches the bytes of one write as one folio, and
 * a small write with a sync takes a third longer in a folio of a megabyte than in a page. A file above the
 * usual maximum is written in large pieces, which takes a quarter of the CPU time.
 */
const ZERO_BYTES = 4_096
const ZERO_BYTES_MAX = 1_048_576
const FILE_NAME = /^(\d{1,9})\.log$/

const zeros = Buffer.alloc(ZERO_BYTES_MAX)

/** Where the next segment begins, with the number and hash of the last one. */
export interface LogPosition extends SegmentId {
  /** Number of the file. */
  file: number
  /** Bytes from the beginning of the file. */
  offset: number
}

type Access = 'write' | 'read'

/** A file of the log. It is filled with zeros when it is created, so that an append changes no metadata. */
interface LogFile extends DirectFile {
  no: number
  bytes: number
  /** Whether `direct` was opened, or is not supported. */
  directTried: boolean
  /** The range of bytes that must be overwritten when a body is erased. */
  dirtyFrom: number
  dirtyTo: number
}

/**
 * The log of one shard: segments in files of a fixed length. An appended segment is on disk immediately if it
 * was written directly, else after the next sync. A file is reused from its beginning once all its segments are in LMDB. The last segment in a file
 * names the next file. Each segment contains the hash of the previous one, which distinguishes it from
 * leftovers of an earlier use (docs/adr/0041-one-log.md).
 */
export class FileLog implements SegmentLog<LogPosition> {
  readonly #directory: string
  readonly #files = new Map<number, LogFile>()
  /** The files with segments that are not released, in order. Appends go to the last one. */
  #live: LogFile[]
  #end: LogPosition
  #durable = 0
  readonly #direct = new DirectWrites()
  #syncing: Promise<void> | undefined

  private constructor(directory: string, files: readonly LogFile[], from: LogPosition) {
    this.#directory = directory
    for (const file of files) this.#files.set(file.no, file)
    const first = this.#files.get(from.file)
    if (first === undefined) throw new Error(`The file ${this.#pathOf(from.file)} is missing`)
    if (first.bytes < from.offset) throw new Error(`The file ${this.#pathOf(from.file)} was truncated`)
    this.#live = [first]
    this.#end = from
  }

  /**
   * Opens the log. Call `read` before anything is appended.
   * @param from the position up to which LMDB has the log; undefined for a store that has never had a log
   * @param access with `read`, nothing is changed and nothing can be appended
   * @throws Error if a file is missing or truncated, or of the file system
   */
  static open(directory: string, from: LogPosition | undefined, access: Access = 'write'): FileLog {
    if (access === 'write') makeDirectory(directory)
    const files: LogFile[] = []
    for (const name of readdirSync(directory)) {
      const [, no] = FILE_NAME.exec(name) ?? []
      if (no !== undefined) files.push(openFile(join(directory, name), Number(no), access))
      else if (access === 'write' && name.endsWith(unfinishedSuffix)) rmSync(join(directory, name))
    }
    if (from !== undefined) return new FileLog(directory, files, from)
    // Without a position in the store nothing was ever appended, so these files belong to another store.
    for (const file of files) {
      closeFile(file)
      rmSync(pathOf(directory, file.no))
    }
    const file = createFile(directory, 1, FILE_BYTES_MIN)
    return new FileLog(directory, [file], {
      number: 0,
      hash: randomBytes(32),
      file: 1,
      offset: 0,
    })
  }

  get end(): LogPosition {
    return this.#end
  }

  /**
   * The segments after the store's position, in order. An incomplete segment ends the log: it was being
   * written when the machine stopped. The segments count as durable once they are in the store.
   * @throws Error if a later segment shows that the incomplete one had been on disk
   */
  *read(): Generator<Segment & LogSegment> {
    for (;;) {
      const file = this.#current
      const content = bytesOf(file)
      for (;;) {
        const segment = decodeSegment(content, this.#end.offset)
        if (segment === undefined || !follows(segment, this.#end)) {
          this.#assertNoneAfter(this.#end)
          this.#durable = this.#end.number
          return
        }
        const { number, hash, bytes } = segment
        this.#end = { number, hash, file: file.no, offset: this.#end.offset + bytes }
        if (segment.kind === 'next') {
          const next = this.#files.get(segment.content.readUInt32BE(0))
          if (next === undefined) throw new Error(`The file after ${this.#pathOf(file.no)} is missing`)
          this.#live.push(next)
          this.#end = { number, hash, file: next.no, offset: 0 }
          break
        }
        yield { ...segment, changes: decodeChanges(segment.content) }
      }
    }
  }

  reserve(contentBytes: number): boolean {
    const bytes = segmentBytes(contentBytes)
    try {
      // A failure here refuses a write; a failure at the append would end the shard.
      this.#openDirect(this.#fits(bytes) ? this.#current : this.#next(bytes))
      return true
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return false
    }
  }

  append(content: SegmentContent): void {
    const bytes = segmentBytes(content.bytes)
    if (!this.#fits(bytes)) this.#continueInNext(bytes)
    this.#write('group', content)
  }

  get durable(): number {
    return this.#durable
  }

  syncNow(): void {
    if (this.#durable === this.#end.number) return
    fdatasyncSync(this.#current.fd)
    this.#durable = this.#end.number
  }

  syncSoon(then: (error: Error | null) => void): void {
    if (this.#syncing !== undefined) return
    const upTo = this.#end.number
    this.#syncing = new Promise((resolve) => {
      fdatasync(this.#current.fd, (error) => {
        this.#syncing = undefined
        if (error === null) this.#durable = Math.max(this.#durable, upTo)
        resolve()
        then(error)
      })
    })
  }

  /** Allows the reuse of the files before this position. */
  release(upTo: LogPosition): void {
    const first = this.#live.findIndex(({ no }) => no === upTo.file)
    assert(first >= 0, 'a log is released up to a position in it')
    this.#live = this.#live.slice(first)
  }

  /** Does nothing: no other node waits for this log. */
  transfer(): void {}

  /** Overwrites all segments on disk. */
  wipe(): void {
    assert(this.#live.length === 1, 'a log is wiped when it is released')
    for (const file of this.#files.values()) {
      if (file.dirtyFrom >= file.dirtyTo) continue
      writeZeros(file, file.dirtyFrom, file.dirtyTo)
      fdatasyncSync(file.fd)
      const clean = file === this.#current ? this.#end.offset : 0
      file.dirtyFrom = clean
      file.dirtyTo = clean
    }
  }

  /** Closes the files after the current sync. */
  async close(): Promise<void> {
    await this.#syncing
    for (const file of this.#files.values()) closeFile(file)
    this.#files.clear()
  }

  get #current(): LogFile {
    const file = this.#live.at(-1)
    assert(file !== undefined, 'a log has a current file')
    return file
  }

  /** Whether the current file has space for so many bytes and for a segment that names the next file. */
  #fits(bytes: number): boolean {
    return this.#end.offset + bytes + SECTOR_BYTES <= this.#current.bytes
  }

  /** The shortest reusable file that is long enough. */
  #spare(bytes: number): LogFile | undefined {
    let found: LogFile | undefined
    for (const file of this.#files.values()) {
      if (this.#live.includes(file) || file.bytes < bytes + SECTOR_BYTES) continue
      if (found === undefined || file.bytes < found.bytes) found = file
    }
    return found
  }

  #create(bytes: number): LogFile {
    const longest = Math.max(...[...this.#files.values()].map((file) => file.bytes))
    const length = Math.min(Math.max(2 * longest, FILE_BYTES_MIN), FILE_BYTES_MAX)
    const file = createFile(
      this.#directory,
      Math.max(...this.#files.keys()) + 1,
      Math.max(length, bytes + SECTOR_BYTES),
    )
    this.#files.set(file.no, file)
    return file
  }

  /** The file for a segment that does not fit into the current one. */
  #next(bytes: number): LogFile {
    return this.#spare(bytes) ?? this.#create(bytes)
  }

  #continueInNext(bytes: number): void {
    const next = this.#next(bytes)
    const name = Buffer.alloc(4)
    name.writeUInt32BE(next.no)
    this.#write('next', contentOf(name))
    this.syncNow()
    for (const file of this.#files.values()) if (file !== next) resetDirect(file)
    this.#live.push(next)
    this.#end = { ...this.#end, file: next.no, offset: 0 }
  }

  #write(kind: SegmentKind, content: SegmentContent): void {
    const file = this.#current
    const { offset } = this.#end
    const memory = this.#memoryFor(file, content)
    const { place, bytes } = encodeSegment(this.#end, { kind, content, durable: this.#durable }, memory)
    // Before the write, because a failed write may leave a part of the segment.
    file.dirtyFrom = Math.min(file.dirtyFrom, offset)
    file.dirtyTo = Math.max(file.dirtyTo, offset + bytes.length)
    let isOnDisk = false
    if (memory === undefined) writeThroughCache(file, bytes, offset)
    else isOnDisk = this.#direct.write(file, bytes, offset)
    this.#end = { ...place, file: file.no, offset: offset + bytes.length }
    if (isOnDisk) this.#durable = this.#end.number
  }

  /**
   * Memory for a direct write; undefined if the page that the segment begins in may be unsynced in the cache.
   */
  #memoryFor(file: LogFile, { bytes }: SegmentContent): Buffer | undefined {
    if (this.#durable !== this.#end.number) return undefined
    return this.#direct.memoryFor(file, segmentBytes(bytes))
  }

  /**
   * Opens a file for direct writes, which only the current and the next file need. Without a free file
   * descriptor, segments go through the cache until one is free again.
   */
  #openDirect(file: LogFile): void {
    if (file.directTried) return
    try {
      file.direct = openDirect(this.#pathOf(file.no))
      file.directTried = true
    } catch (error) {
      if (!isFileLimitReached(error)) throw error
    }
  }

  /** Asserts that the segment after `end` was never reported as durable. */
  #assertNoneAfter(end: LogPosition): void {
    for (const file of this.#files.values()) {
      const content = bytesOf(file)
      for (let at = 0; at < content.length; at += SECTOR_BYTES) {
        const segment = decodeSegment(content, at)
        if (segment === undefined || segment.durable <= end.number) continue
        throw new Error(
          `The log is damaged at byte ${end.offset} of ${this.#pathOf(end.file)}: segment ${end.number + 1} is ` +
            `incomplete, but segment ${segment.number} shows that it had been on disk`,
        )
      }
    }
  }

  #pathOf(no: number): string {
    return pathOf(this.#directory, no)
  }
}

function follows({ number, prev }: Segment, before: SegmentId): boolean {
  return number === before.number + 1 && prev.equals(before.hash)
}

function pathOf(directory: string, no: number): string {
  return join(directory, `${no}.log`)
}

function openFile(path: string, no: number, access: Access): LogFile {
  const fd = openSync(path, access === 'write' ? 'r+' : 'r')
  const { size } = fstatSync(fd)
  return { no, fd, direct: undefined, directTried: false, bytes: size, dirtyFrom: 0, dirtyTo: size }
}

function closeFile(file: LogFile): void {
  closeSync(file.fd)
  closeDirect(file)
}

function resetDirect(file: LogFile): void {
  closeDirect(file)
  file.directTried = false
}

/** Creates a file of zeros on disk. A file that could not be completed is removed. */
function createFile(directory: string, no: number, bytes: number): LogFile {
  const path = pathOf(directory, no)
  const unfinished = path + unfinishedSuffix
  const fd = openSync(unfinished, 'w+', 0o600)
  try {
    writeZeros({ fd, bytes }, 0, bytes)
    fdatasyncSync(fd)
    renameSync(unfinished, path)
    syncDirectory(directory)
    return { no, fd, direct: undefined, directTried: false, bytes, dirtyFrom: 0, dirtyTo: 0 }
  } catch (error) {
    closeSync(fd)
    rmSync(unfinished, { force: true })
    throw error
  }
}

function writeZeros({ fd, bytes }: Pick<LogFile, 'fd' | 'bytes'>, from: number, to: number): void {
  const piece = bytes > FILE_BYTES_MAX ? ZERO_BYTES_MAX : ZERO_BYTES
  for (let at = from; at < to;) at += writeSync(fd, zeros, 0, Math.min(piece, to - at), at)
}

function bytesOf({ fd, bytes }: LogFile): Buffer {
  const content = Buffer.allocUnsafe(bytes)
  for (let at = 0; at < bytes;) {
    const read = readSync(fd, content, at, bytes - at, at)
    assert(read > 0, 'a file of the log has the length that it had')
    at += read
  }
  return content
}
