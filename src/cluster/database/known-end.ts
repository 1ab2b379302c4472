import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readIfExists, syncDirectory, writeDurably } from '../../base/durable-file.js'
import type { SegmentPosition } from './register.js'

/*
 * The durable end of a shard's log, as far as a node knows it: a small file beside the store that outlives
 * the store. The file has two slots that are written alternately, so an interrupted write leaves the previous
 * slot intact. A slot is one line: the number of the segment, its hash, and a checksum of both.
 */

/** Distance of the two slots, bytes: no disk sector contains both. */
const SLOT_BYTES = 4_096
const CHECK_DIGITS = 16
const slotPattern = /^(\d+) ([0-9a-f]{64}) ([0-9a-f]{16})$/

/** The file of a shard in a node's data directory. */
export function knownEndPath(dataDir: string, shard: number): string {
  return join(dataDir, `shard-${shard}.known`)
}

/** Reads the file. @returns undefined if there is none @throws DamagedKnownEnd */
export function readKnownEnd(path: string): SegmentPosition | undefined {
  return readNewest(path)?.position
}

/** Replaces the file, after a loss was accepted, by what the log has; removes it if the log is empty. */
export function replaceKnownEnd(path: string, position: SegmentPosition | undefined): void {
  if (position !== undefined) writeDurably(path, encodeSlots(position))
  else {
    rmSync(path, { force: true })
    syncDirectory(dirname(path))
  }
}

/** No slot of the file is readable. */
export class DamagedKnownEnd extends Error {
  constructor(path: string) {
    super(
      `The file ${path}, which records the durable end of the cluster’s log, is damaged: remove it only if the database has lost nothing`,
    )
  }
}

/** The file, held open by the one thread that writes it. */
export class KnownEnd {
  readonly #path: string
  #handle: FileHandle | undefined
  #newest: { position: SegmentPosition; slot: number } | undefined
  #synced: Promise<void> = Promise.resolve()

  /** @throws DamagedKnownEnd */
  constructor(path: string) {
    this.#path = path
    this.#newest = readNewest(path)
  }

  /** The last segment known to be durable; undefined if there is none. */
  get position(): SegmentPosition | undefined {
    return this.#newest?.position
  }

  /**
   * Records a later segment, which is on disk when `synced` resolves.
   * @throws Error of the file system; then the file must be opened again
   */
  async record(position: SegmentPosition): Promise<void> {
    // The other slot must be on disk before this one is written.
    await this.#synced
    if (this.#newest === undefined) {
      writeDurably(this.#path, encodeSlots(position))
      this.#newest = { position, slot: 0 }
    } else if (position.number > this.#newest.position.number) {
      const slot = 1 - this.#newest.slot
      this.#handle ??= await open(this.#path, 'r+')
      await this.#handle.write(encodeSlot(position), slot * SLOT_BYTES)
      this.#newest = { position, slot }
      this.#synced = this.#handle.datasync()
      // Reported to callers of `synced` and to the next write.
      this.#synced.catch(() => {})
    }
  }

  /** Resolves when the last write is on disk. @throws Error of the file system, on every later call too */
  get synced(): Promise<void> {
    return this.#synced
  }

  async close(): Promise<void> {
    await this.#synced.catch(() => {})
    await this.#handle?.close()
  }
}

function readNewest(path: string): { position: SegmentPosition; slot: number } | undefined {
  const text = readIfExists(path)
  if (text === undefined) return undefined
  const slots = [0, 1].flatMap((slot) => {
    const position = parseSlot(text.slice(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES))
    return position === undefined ? [] : [{ position, slot }]
  })
  const [newest] = slots.toSorted((one, other) => other.position.number - one.position.number)
  if (newest === undefined) throw new DamagedKnownEnd(path)
  return newest
}

function parseSlot(slot: string): SegmentPosition | undefined {
  const [, number = '', digits = '', check] = slotPattern.exec(slot.slice(0, slot.indexOf('\n'))) ?? []
  if (check === undefined || check !== checksum(`${number} ${digits}`)) return undefined
  return { number: Number(number), hash: Buffer.from(digits, 'hex') }
}

/** Both slots, the position in the first one. Later writes do not change the length. */
function encodeSlots(position: SegmentPosition): string {
  return encodeSlot(position).padEnd(2 * SLOT_BYTES - 1) + '\n'
}

function encodeSlot({ number, hash: name }: SegmentPosition): string {
  const text = `${number} ${name.toString('hex')}`
  return `${text} ${checksum(text)}\n`
}

function checksum(text: string): string {
  return hash('sha256', text).slice(0, CHECK_DIGITS)
}
