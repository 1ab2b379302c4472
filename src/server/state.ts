import { refuse, type Refusal } from '../base/errors.js'
import { isFileSystemError } from '../base/durable-file.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import { freeBytesOf } from '../data/directory.js'

const stopping = refuse('unavailable', 'The server is stopping')
const refusing = refuse('unavailable', 'This node of the cluster refuses to serve: its /readyz says why')
const storageFull = refuse('storage_full', 'The data disk is nearly full: free some of it; reads go on')

/** The words of the memory of a `Standing`. */
const words = { stopping: 0, readOnly: 1, refuses: 2 } as const

/** Whether the server accepts requests, and writes, in memory that all fronts share. */
export class Standing {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  #refusal: Refusal | undefined

  /** @param memory that of the main thread; new when absent */
  constructor(memory = new SharedArrayBuffer(12)) {
    this.memory = memory
    this.#words = new Int32Array(memory)
  }

  get stopping(): boolean {
    return Atomics.load(this.#words, words.stopping) === 1
  }

  set stopping(value: boolean) {
    Atomics.store(this.#words, words.stopping, value ? 1 : 0)
  }

  get readOnly(): boolean {
    return Atomics.load(this.#words, words.readOnly) === 1
  }

  set readOnly(value: boolean) {
    Atomics.store(this.#words, words.readOnly, value ? 1 : 0)
  }

  /** A node of a cluster serves nothing any more. Its main thread says why. */
  refuseAll(refusal: Refusal): void {
    this.#refusal = refusal
    Atomics.store(this.#words, words.refuses, 1)
  }

  /** Why a node of a cluster that stands by accepts no request. Its main thread alone listens then. */
  waiting: (() => Refusal) | undefined

  /** Why no request is accepted now. */
  readonly stoppingRefusal = (): Refusal | undefined =>
    this.stopping ? stopping : (this.#refused ?? this.waiting?.())

  get #refused(): Refusal | undefined {
    return Atomics.load(this.#words, words.refuses) === 1 ? (this.#refusal ?? refusing) : undefined
  }

  /** Whether the disk of another node, that this one takes requests for, is nearly full. */
  othersReadOnly = (): boolean => false

  /** Why no write is accepted now. */
  readonly writeRefusal = (): Refusal | undefined =>
    this.readOnly || this.othersReadOnly() ? storageFull : undefined
}

/** Watches whether the server accepts writes. */
export class ServerState {
  readonly standing = new Standing()
  readonly #settings: Pick<Config, 'dataDir' | 'logDir' | 'freeBytesMin'>
  readonly #log: Logger
  #timer: NodeJS.Timeout | undefined
  /** Writes of the start that the disk had no space for. */
  #pending: (() => Promise<boolean>)[] = []

  constructor(settings: Pick<Config, 'dataDir' | 'logDir' | 'freeBytesMin'>, log: Logger) {
    this.#settings = settings
    this.#log = log
  }

  /** Whether free space is below its mark, so that the server only reads. */
  get readOnly(): boolean {
    return this.standing.readOnly
  }

  /** Watches the disk: LMDB reports a full one as an I/O error, when it is too late to answer well. */
  start(): void {
    this.#look()
    this.#timer = setInterval(() => this.#look(), limits.diskWatchMs)
  }

  /**
   * Carries out a write of the start, and again after each look at the disk until it is done: a server starts on a full
   * disk, too.
   * @param write resolves false where the disk has no space for it
   */
  async writeAtStart(write: () => Promise<boolean>): Promise<void> {
    if (!(await write())) this.#pending.push(write)
  }

  stop(): void {
    this.standing.stopping = true
    clearInterval(this.#timer)
  }

  #look(): void {
    this.#compare()
    const pending = this.#pending.splice(0)
    for (const write of pending) {
      this.writeAtStart(write).catch((error: unknown) =>
        this.#log.error({ err: error }, 'a write of the start failed'),
      )
    }
  }

  #compare(): void {
    const { freeBytesMin } = this.#settings
    if (freeBytesMin === 0) return
    const { free, err } = this.#freeBytes()
    const readOnly = free < freeBytesMin
    if (readOnly !== this.readOnly) {
      const text = err === undefined ? 'free space crossed its mark' : 'free space cannot be told'
      this.#log.warn({ free_bytes: free, read_only: readOnly, err }, text)
    }
    this.standing.readOnly = readOnly
  }

  /** None where the disk does not tell. */
  #freeBytes(): { free: number; err?: Error } {
    try {
      return { free: freeBytesOf(this.#settings) }
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return { free: 0, err: error }
    }
  }
}
