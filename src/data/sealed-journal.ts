import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { isFileSystemError, unfinishedSuffix } from '../base/durable-file.js'
import type { RandomBytes } from '../base/random.js'
import { type SealContext, seal, unseal } from '../strand/seal.js'

/** The source of a journal: JSON values by key. */
export interface JournalSource {
  keys(): Iterable<string>
  /** The current value of a key; undefined if it was removed. */
  valueOf(key: string): object | undefined
}

export interface JournalSettings {
  path: string
  /** 32 bytes. */
  masterSeed: Uint8Array
  context: SealContext
  random: RandomBytes
  /** The maximum size of the file, bytes; further values are not stored. */
  bytesMax: number
  /** Called once if the file cannot be written. Nothing is stored from then on. */
  failed(error: Error): void
}

/** Values per sealed line when the file is rewritten. */
const VALUES_IN_LINE = 256

/** Growth beyond twice the rewritten size after which the file is rewritten, bytes. */
const SLACK_BYTES = 1_048_576

/**
 * Values that outlive the process, in a file of sealed lines of `[key, value]`, of which the last per key
 * counts. Changes of one tick are one line. A kill loses the changes of its tick; a power failure also loses
 * those that the system has not written yet, because nothing waits for the disk.
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

  /**
   * Reads the values of an earlier process. Lines that cannot be unsealed, such as a truncated one, are
   * skipped.
   */
  read(): Map<string, unknown> {
    const { path, bytesMax } = this.#settings
    const found = new Map<string, unknown>()
    this.#guarded(() => {
      const facts = statSync(path, { throwIfNoEntry: false })
      if (facts === undefined || !facts.isFile() || facts.size > bytesMax) return
      for (const line of readFileSync(path, 'latin1').split('\n')) {
        for (const [key, value] of this.#unseal(line)) found.set(key, value)
      }
    })
    for (const [key, value] of found) if (value === null) found.delete(key)
    return found
  }

  /** Stores all values of the source, and its changes from now on. */
  begin(source: JournalSource): void {
    this.#source = source
    this.#rewrite()
  }

  /** Records that the value of a key was changed or removed. */
  note(key: string): void {
    if (this.#source === undefined) return
    if (this.#changed.size === 0) setImmediate(() => this.#flush())
    this.#changed.add(key)
  }

  /** Stores pending changes and ends the journal. */
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
    const { masterSeed, context, random } = this.#settings
    const values = keys.map((key) => [key, this.#source?.valueOf(key) ?? null])
    const secret = Buffer.from(JSON.stringify(values))
    const line = `${seal(masterSeed, { ...context, secret }, random).toString('base64')}\n`
    if (this.#file !== undefined) writeSync(this.#file, line)
    this.#bytes += line.length
  }

  /** Rewrites the file without outdated values. */
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

  #unseal(line: string): [key: string, value: unknown][] {
    const { masterSeed, context } = this.#settings
    try {
      const values: unknown = JSON.parse(unseal(masterSeed, context, Buffer.from(line, 'base64')).toString())
      return Array.isArray(values) ? values.filter(isEntry) : []
    } catch {
      // Truncated, or sealed under another seed.
      return []
    }
  }

  /** After an error of the file system, the server continues without the journal. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      this.#abandon()
      this.#settings.failed(error)
    }
  }

  /** Removes the file, because it will be outdated. */
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
