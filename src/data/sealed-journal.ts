import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { isFileSystemError, unfinishedSuffix } from '../base/durable-file.js'
import type { RandomBytes } from '../base/random.js'
import { type SealedPlace, seal, unseal } from '../strand/seal.js'

/** What a journal keeps: values of JSON by their keys. */
export interface JournalSource {
  keys(): Iterable<string>
  /** The value of a key now; undefined where there is none any more. */
  valueOf(key: string): object | undefined
}

/** How a journal is made. */
export interface JournalSettings {
  /** Its file. */
  path: string
  /** 32 bytes. */
  masterSeed: Uint8Array
  place: SealedPlace
  random: RandomBytes
  /** The most bytes of the file: values beyond them are not kept. */
  bytesMax: number
  /** Called once where the file cannot be written: nothing is kept from then on. */
  failed(error: Error): void
}

/** Values that are sealed together when the file is written anew. */
const VALUES_IN_LINE = 256

/** Bytes after which the file is written anew, beside twice those that it had then. */
const SLACK_BYTES = 1_048_576

/**
 * Values that outlive the process, in a file of sealed lines of `[key, value]`, of which the last of each key counts. Changes
 * of one turn of the event loop are one line. A kill loses those of its turn, and a loss of power those that the system has
 * not written yet: nothing waits for the disk.
 */
export class SealedJournal {
  readonly #settings: JournalSettings
  readonly #changed = new Set<string>()
  #source: JournalSource | undefined
  #file: number | undefined
  #bytes = 0
  #rewriteAtBytes = 0

  constructor(settings: JournalSettings) {
    this.#settings = settings
  }

  /** The values that an earlier process has kept; lines that do not open, as one that was cut off, are left out. */
  read(): Map<string, unknown> {
    const { path, bytesMax } = this.#settings
    const found = new Map<string, unknown>()
    this.#guarded(() => {
      const facts = statSync(path, { throwIfNoEntry: false })
      if (facts === undefined || !facts.isFile() || facts.size > bytesMax) return
      for (const line of readFileSync(path, 'latin1').split('\n')) {
        for (const [key, value] of this.#opened(line)) found.set(key, value)
      }
    })
    for (const [key, value] of found) if (value === null) found.delete(key)
    return found
  }

  /** Keeps what the source has, and from now on what is changed there. */
  begin(source: JournalSource): void {
    this.#source = source
    this.#rewrite()
  }

  /** The value of a key was changed, or is no more. */
  note(key: string): void {
    if (this.#source === undefined) return
    if (this.#changed.size === 0) setImmediate(() => this.#flush())
    this.#changed.add(key)
  }

  /** Keeps what there is now, and no later change. */
  close(): void {
    this.#flush()
    this.#source = undefined
    const file = this.#file
    this.#file = undefined
    if (file !== undefined) this.#guarded(() => closeSync(file))
  }

  #flush(): void {
    const changed = [...this.#changed]
    this.#changed.clear()
    if (this.#file === undefined || changed.length === 0) return
    this.#guarded(() => this.#append(changed))
    if (this.#bytes >= this.#rewriteAtBytes) this.#rewrite()
  }

  #append(keys: readonly string[]): void {
    const { masterSeed, place, random } = this.#settings
    const values = keys.map((key) => [key, this.#source?.valueOf(key) ?? null])
    const secret = Buffer.from(JSON.stringify(values))
    const line = `${seal(masterSeed, { ...place, secret }, random).toString('base64')}\n`
    if (this.#file !== undefined) writeSync(this.#file, line)
    this.#bytes += line.length
  }

  /** Writes the file anew, without values that were changed later. */
  #rewrite(): void {
    const { path, bytesMax } = this.#settings
    this.#guarded(() => {
      if (this.#file !== undefined) closeSync(this.#file)
      this.#file = openSync(path + unfinishedSuffix, 'w', 0o600)
      this.#bytes = 0
      const keys = [...(this.#source?.keys() ?? [])]
      for (let at = 0; at < keys.length && this.#bytes < bytesMax / 4; at += VALUES_IN_LINE)
        this.#append(keys.slice(at, at + VALUES_IN_LINE))
      renameSync(path + unfinishedSuffix, path)
      this.#rewriteAtBytes = 2 * this.#bytes + SLACK_BYTES
    })
  }

  #opened(line: string): [key: string, value: unknown][] {
    const { masterSeed, place } = this.#settings
    try {
      const values: unknown = JSON.parse(unseal(masterSeed, place, Buffer.from(line, 'base64')).toString())
      return Array.isArray(values) ? values.filter(isEntry) : []
    } catch {
      // Cut off, or sealed under another seed.
      return []
    }
  }

  /** Whatever the file system refuses, the server goes on without the journal. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      this.#abandon()
      this.#settings.failed(error)
    }
  }

  /** What the file says is out of date from now on. */
  #abandon(): void {
    this.#source = undefined
    const { path } = this.#settings
    try {
      if (this.#file !== undefined) closeSync(this.#file)
      for (const file of [path + unfinishedSuffix, path]) rmSync(file, { force: true })
    } catch (error) {
      if (!isFileSystemError(error)) throw error
    }
    this.#file = undefined
  }
}

function isEntry(value: unknown): value is [key: string, value: unknown] {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === 'string'
}
