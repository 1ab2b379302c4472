import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { assert } from '../../../src/base/assert.js'

/**
 * A kind of call in the shim (test/faults/shim/disk-shim.c), and the errors that its calls fail with
 * alternately.
 */
export interface FailingCall {
  kind: keyof typeof kinds
  errors: readonly (keyof typeof errnos)[]
}

const kinds = { write: 1, short: 2, late: 3, sync: 4, open: 5 }
const errnos = { EIO: 5, ENOSPC: 28, EMFILE: 24 }

/*
 * The shim's `struct failing`: five unsigned numbers of 32 bits. Its first one, the kind, is written last.
 */
const BYTES = 20
const KIND_BYTES = 4
const HIT_AT = 16

/** A disk on which single calls of a process fail, chosen while it runs. */
export class FailingDisk {
  readonly #file: number
  /** Environment variables for the shim. */
  readonly settings: Record<string, string>

  /** @param path the file to create, through which the shim is controlled */
  constructor(path: string) {
    this.#file = openSync(path, 'wx+', 0o600)
    this.settings = { SHIM_FAIL: path }
    writeSync(this.#file, Buffer.alloc(BYTES), 0, BYTES, 0)
  }

  /**
   * Makes the Nth call of a kind from now fail, once. Replaces an earlier failure that has not happened yet.
   */
  fail({ kind, errors }: FailingCall, nth: number): void {
    const error = errors[nth % errors.length]
    assert(error !== undefined, 'a failing call has an error')
    this.#setKind(0)
    writeSync(this.#file, Buffer.from(Uint32Array.of(nth, errnos[error], 0, 0).buffer), 0, 16, KIND_BYTES)
    this.#setKind(kinds[kind])
  }

  /** Stops failures. */
  stopFailing(): void {
    this.#setKind(0)
  }

  /** Whether the failing call was made. */
  get hit(): boolean {
    const hit = Buffer.alloc(4)
    readSync(this.#file, hit, 0, hit.length, HIT_AT)
    return hit.readUInt32LE() === 1
  }

  close(): void {
    closeSync(this.#file)
  }

  #setKind(kind: number): void {
    writeSync(this.#file, Buffer.from(Uint32Array.of(kind).buffer), 0, KIND_BYTES, 0)
  }
}
