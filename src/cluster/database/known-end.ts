import { hash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readIfThere, syncDirectory, writeDurably } from '../../base/durable-file.js'
import type { SegmentPosition } from './register.js'

/*
 * What a node knows to be durable of a shard's log: a small file beside the store, which outlives it. It has two slots that are
 * written in turn, so that a write which is cut off leaves the one before. Each is a line: number of the segment, its hash, and
 * a checksum of both.
 */

/** Bytes from one slot to the next: no disk writes both at once. */
const SLOT_BYTES = 4_096
const CHECK_DIGITS = 16
const slotPattern = /^(\d+) ([0-9a-f]{64}) ([0-9a-f]{16})$/

/** The file of a shard in a node's data directory. */
export function knownEndPath(dataDir: string, shard: number): string {
  return join(dataDir, `shard-${shard}.known`)
}

/** Reads it. @returns undefined where there is none @throws DamagedEnd */
export function readKnownEnd(path: string): SegmentPosition | undefined {
  return newestIn(path)?.place
}

/** Replaces it: by what the log has, where its loss is accepted; removes it where the log has nothing. */
export function replaceKnownEnd(path: string, place: SegmentPosition | undefined): void {
  if (place !== undefined) writeDurably(path, slotsWith(place))
  else {
    rmSync(path, { force: true })
    syncDirectory(dirname(path))
  }
}

/** No slot of the file can be read. */
export class DamagedEnd extends Error {
  constructor(path: string) {
    super(
      `The file ${path}, which says what of the cluster’s log was durable, is damaged: remove it only if the database has lost nothing`,
    )
  }
}

/** The file, kept open by the one thread that writes it. */
export class KnownEnd {
  readonly #path: string
  #handle: FileHandle | undefined
  #newest: { place: SegmentPosition; slot: number } | undefined
  #synced: Promise<void> = Promise.resolve()

  /** @throws DamagedEnd */
  constructor(path: string) {
    this.#path = path
    this.#newest = newestIn(path)
  }

  /** The last segment that is known to be durable; undefined where none is. */
  get place(): SegmentPosition | undefined {
    return this.#newest?.place
  }

  /** Notes a later segment, which is on disk when `synced` resolves. @throws Error of the file system: the file is to be opened anew */
  async keep(place: SegmentPosition): Promise<void> {
    // The other slot is to be on disk before this one is written.
    await this.#synced
    if (this.#newest === undefined) {
      writeDurably(this.#path, slotsWith(place))
      this.#newest = { place, slot: 0 }
    } else if (place.number > this.#newest.place.number) {
      const slot = 1 - this.#newest.slot
      this.#handle ??= await open(this.#path, 'r+')
      await this.#handle.write(lineOf(place), slot * SLOT_BYTES)
      this.#newest = { place, slot }
      this.#synced = this.#handle.datasync()
      // Told to who waits for it, and to the next one that writes.
      this.#synced.catch(() => {})
    }
  }

  /** Resolves when the last one is on disk. @throws Error of the file system, also the next time */
  get synced(): Promise<void> {
    return this.#synced
  }

  async close(): Promise<void> {
    await this.#synced.catch(() => {})
    await this.#handle?.close()
  }
}

function newestIn(path: string): { place: SegmentPosition; slot: number } | undefined {
  const text = readIfThere(path)
  if (text === undefined) return undefined
  const slots = [0, 1].flatMap((slot) => {
    const place = placeIn(text.slice(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES))
    return place === undefined ? [] : [{ place, slot }]
  })
  const [newest] = slots.toSorted((one, other) => other.place.number - one.place.number)
  if (newest === undefined) throw new DamagedEnd(path)
  return newest
}

function placeIn(slot: string): SegmentPosition | undefined {
  const [, number = '', digits = '', check] = slotPattern.exec(slot.slice(0, slot.indexOf('\n'))) ?? []
  if (check === undefined || check !== checkOf(`${number} ${digits}`)) return undefined
  return { number: Number(number), hash: Buffer.from(digits, 'hex') }
}

/** Both slots, the first one with a place: later writes change no length. */
function slotsWith(place: SegmentPosition): string {
  return lineOf(place).padEnd(2 * SLOT_BYTES - 1) + '\n'
}

function lineOf({ number, hash: name }: SegmentPosition): string {
  const text = `${number} ${name.toString('hex')}`
  return `${text} ${checkOf(text)}\n`
}

function checkOf(text: string): string {
  return hash('sha256', text).slice(0, CHECK_DIGITS)
}
