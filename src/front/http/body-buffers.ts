import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../../base/assert.js'
import { isFileSystemError } from '../../base/durable-file.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'

/** A body whose connection is paused and resumed. */
export interface PausableBody {
  pauseConnection(): void
  resumeConnection(): void
}

/** The bodies of one owner. */
interface Owned {
  /** Bytes in their buffers. */
  bytes: number
  /** Bodies that want more, and whose connections are resumed. */
  receiving: Set<PausableBody>
  /** Bodies that want more, and whose connections stay paused while too many bytes are buffered. */
  waiting: Set<PausableBody>
}

/**
 * The buffers of all bodies of a front: for what arrives although a connection is paused, which is what is left
 * of one read (512 KiB with uWebSockets.js), and what arrived before the reader was known. The memory is
 * limited, and what exceeds it is written to a file: neither may end an upload.
 */
export class BodyBuffers {
  readonly #folder: string
  readonly #pieces = new Pieces(limits.bufferedPieceBytes, limits.bufferedPiecesMax)
  /** Otherwise each of some hundred short bodies that wait for a moment would take a large piece, or a file. */
  readonly #smallPieces = new Pieces(limits.bufferedSmallPieceBytes, limits.bufferedSmallPiecesMax)
  #fileBytes = 0
  readonly #owners = new Map<string, Owned>()

  /** @param folder where files are created; they lose their names immediately */
  constructor(folder: string) {
    this.#folder = folder
  }

  /** A piece of memory to write to; undefined if all are in use. @param isSmall whether a small one is enough */
  takePiece(isSmall: boolean): Buffer | undefined {
    return (isSmall ? this.#smallPieces.take() : undefined) ?? this.#pieces.take()
  }

  returnPiece(piece: Buffer): void {
    const pieces = piece.length === limits.bufferedPieceBytes ? this.#pieces : this.#smallPieces
    pieces.giveBack(piece)
  }

  /** Counts bytes in files. @returns false, and counts nothing, if that would be too many */
  countFileBytes(bytes: number): boolean {
    if (this.#fileBytes + bytes > limits.bufferedFileBytesMax) return false
    this.#fileBytes += bytes
    return true
  }

  openFile(): number {
    const path = join(this.#folder, randomUUID())
    const file = openSync(path, 'wx+', 0o600)
    rmSync(path)
    return file
  }

  /**
   * Counts bytes that were added to a buffer of an owner, or removed from it if negative. While there are too
   * many, only what is buffered already is read.
   */
  count(owner: string, bytes: number): void {
    if (bytes === 0) return
    const owned = this.#ownedBy(owner)
    owned.bytes += bytes
    const { receiving, waiting } = owned
    const isFull = owned.bytes >= limits.bufferedOwnerBytes
    const [from, to] = isFull ? [receiving, waiting] : [waiting, receiving]
    for (const body of from) {
      from.delete(body)
      to.add(body)
      if (isFull) body.pauseConnection()
      else body.resumeConnection()
    }
    this.#forgetUnused(owner, owned)
  }

  /** Resumes a connection, now or when fewer bytes of the owner are buffered. */
  resume(owner: string, body: PausableBody): void {
    const { bytes, receiving, waiting } = this.#ownedBy(owner)
    if (bytes >= limits.bufferedOwnerBytes) {
      waiting.add(body)
      return
    }
    receiving.add(body)
    body.resumeConnection()
  }

  /** A body wants no more for now, or has ended. */
  forget(owner: string, body: PausableBody): void {
    const owned = this.#owners.get(owner)
    if (owned === undefined) return
    owned.receiving.delete(body)
    owned.waiting.delete(body)
    this.#forgetUnused(owner, owned)
  }

  #ownedBy(owner: string): Owned {
    let owned = this.#owners.get(owner)
    if (owned === undefined) {
      owned = { bytes: 0, receiving: new Set(), waiting: new Set() }
      this.#owners.set(owner, owned)
    }
    return owned
  }

  #forgetUnused(owner: string, { bytes, receiving, waiting }: Owned): void {
    if (bytes === 0 && receiving.size === 0 && waiting.size === 0) this.#owners.delete(owner)
  }
}

/** A limited number of pieces of memory of one size. */
class Pieces {
  readonly #bytes: number
  readonly #max: number
  /** Pieces that are free: the first use of memory is slow. */
  readonly #spare: Buffer[] = []
  #count = 0

  constructor(bytes: number, max: number) {
    this.#bytes = bytes
    this.#max = max
  }

  take(): Buffer | undefined {
    const piece = this.#spare.pop()
    if (piece !== undefined || this.#count >= this.#max) return piece
    this.#count++
    return Buffer.allocUnsafeSlow(this.#bytes)
  }

  giveBack(piece: Buffer): void {
    this.#spare.push(piece)
  }
}

/** A part of a body, in a piece of memory. */
interface Part {
  piece: Buffer
  from: number
  to: number
}

/** The buffer of one body: a queue of bytes in memory, and after them those in a file. */
export class BodyBuffer {
  readonly #buffers: BodyBuffers
  #bytes = 0
  readonly #parts: Part[] = []
  #file: { descriptor: number; from: number; to: number } | undefined

  constructor(buffers: BodyBuffers) {
    this.#buffers = buffers
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Adds a copy of the bytes. @returns why that is not possible, after which the body cannot be read */
  add(bytes: Uint8Array): Refusal | undefined {
    let at = 0
    while (this.#file === undefined && at < bytes.length) {
      const part = this.#partToFill(bytes.length)
      if (part === undefined) break
      const length = Math.min(bytes.length - at, part.piece.length - part.to)
      part.piece.set(bytes.subarray(at, at + length), part.to)
      part.to += length
      at += length
    }
    const refusal = at < bytes.length ? this.#addToFile(bytes.subarray(at)) : undefined
    if (refusal === undefined) this.#bytes += bytes.length
    return refusal
  }

  /** Removes and returns the next bytes, valid until more are added; undefined if there are none. */
  take(): Uint8Array | undefined {
    const [part] = this.#parts
    const bytes = part === undefined ? this.#takeFromFile() : takeFrom(part)
    if (part !== undefined && part.from === part.to) this.#freeFirst()
    this.#bytes -= bytes?.length ?? 0
    return bytes
  }

  drop(): void {
    while (this.#parts.length > 0) this.#freeFirst()
    this.#closeFile()
    this.#bytes = 0
  }

  /** The last part if its piece has free bytes, or a new one. @param bytes that were added in one call */
  #partToFill(bytes: number): Part | undefined {
    const last = this.#parts.at(-1)
    if (last !== undefined && last.to < last.piece.length) return last
    const isShort = last === undefined && bytes <= limits.bufferedSmallPieceBytes
    const piece = this.#buffers.takePiece(isShort)
    if (piece === undefined) return undefined
    const part = { piece, from: 0, to: 0 }
    this.#parts.push(part)
    return part
  }

  #freeFirst(): void {
    const part = this.#parts.shift()
    if (part !== undefined) this.#buffers.returnPiece(part.piece)
  }

  #addToFile(bytes: Uint8Array): Refusal | undefined {
    if (!this.#buffers.countFileBytes(bytes.length)) return tooManyBytes
    try {
      this.#file ??= { descriptor: this.#buffers.openFile(), from: 0, to: 0 }
      const { descriptor, to } = this.#file
      for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at, bytes.length - at, to + at)
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      this.#buffers.countFileBytes(-bytes.length)
      return refuse('storage_full', `The data disk could not buffer the request body (${error.code})`)
    }
    this.#file.to += bytes.length
    return undefined
  }

  #takeFromFile(): Uint8Array | undefined {
    const file = this.#file
    if (file === undefined) return undefined
    const bytes = Buffer.allocUnsafe(Math.min(limits.bodyPartBytes, file.to - file.from))
    const length = readSync(file.descriptor, bytes, 0, bytes.length, file.from)
    assert(length === bytes.length, 'a buffered part is complete')
    file.from += length
    this.#buffers.countFileBytes(-length)
    if (file.from === file.to) this.#closeFile()
    return bytes
  }

  #closeFile(): void {
    if (this.#file === undefined) return
    const { descriptor, from, to } = this.#file
    this.#file = undefined
    this.#buffers.countFileBytes(from - to)
    closeSync(descriptor)
  }
}

function takeFrom(part: Part): Uint8Array {
  const { piece, from, to } = part
  part.from = Math.min(from + limits.bodyPartBytes, to)
  return piece.subarray(from, part.from)
}

const tooManyBytes = refuse('overloaded', 'Too many bytes of request bodies are buffered, try again', {
  retryAfterSecs: 1,
})
