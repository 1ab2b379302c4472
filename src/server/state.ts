import { refuse, type Refusal } from '../base/errors.js'
import { isFileSystemError } from '../base/durable-file.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import type { HostStatus } from '../cluster/host.js'
import type { Config } from '../settings/config.js'
import { freeBytesOf } from '../data/directory.js'

const stopping = refuse('unavailable', 'The server is stopping')
const refusing = refuse('unavailable', 'This node of the cluster refuses to serve: its /readyz says why')

/** The indexes of the flags in the memory of a `ServerStatus`. */
const words = { stopping: 0, readOnly: 1, refuses: 2 } as const

/** Whether the server accepts requests and writes, in memory shared by all fronts. */
export class ServerStatus implements HostStatus {
  readonly memory: SharedArrayBuffer
  readonly #words: Int32Array
  #refusal: Refusal | undefined

  /** @param memory of the main thread; a new one if absent */
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

  /** Makes a node of a cluster refuse all requests. Only its main thread knows the reason. */
  refuseAll(refusal: Refusal): void {
    this.#refusal = refusal
    Atomics.store(this.#words, words.refuses, 1)
  }

  /** Why a standby accepts no request. Only its main thread listens then. */
  standbyRefusal: (() => Refusal) | undefined

  /** Why no request is accepted now; undefined if requests are accepted. */
  readonly stoppingRefusal = (): Refusal | undefined =>
    this.stopping ? stopping : (this.#refused ?? this.standbyRefusal?.())

  get #refused(): Refusal | undefined {
    return Atomics.load(this.#words, words.refuses) === 1 ? (this.#refusal ?? refusing) : undefined
  }
}

export class ServerState {
  readonly status = new ServerStatus()
  readonly #settings: Pick<Config, 'dataDir' | 'logDir' | 'freeBytesMin'>
  readonly #log: Logger
  #timer: NodeJS.Timeout | undefined
  /** Writes of the start for which the disk had no space. */
  #pending: (() => Promise<boolean>)[] = []

  constructor(settings: Pick<Config, 'dataDir' | 'logDir' | 'freeBytesMin'>, log: Logger) {
    this.#settings = settings
    this.#log = log
  }

  /** Whether free space is below the limit, so that writes are refused. */
  get readOnly(): boolean {
    return this.status.readOnly
  }

  /**
   * Watches the disk, because LMDB reports a full disk as an I/O error, too late to refuse a write properly.
   */
  start(): void {
    this.#look()
    this.#timer = setInterval(() => this.#look(), limits.diskWatchMs)
  }

  /**
   * Performs a write of the start, and repeats it after each check of the disk until it succeeds: a server
   * can start on a full disk.
   * @param write resolves false if the disk has no space
   */
  async writeAtStart(write: () => Promise<boolean>): Promise<void> {
    if (!(await write())) this.#pending.push(write)
  }

  stop(): void {
    this.status.stopping = true
    clearInterval(this.#timer)
  }

  #look(): void {
    this.#checkSpace()
    const pending = this.#pending.splice(0)
    for (const write of pending) {
      this.writeAtStart(write).catch((error: unknown) =>
        this.#log.error({ err: error }, 'a write that the start had postponed failed'),
      )
    }
  }

  #checkSpace(): void {
    const { freeBytesMin } = this.#settings
    if (freeBytesMin === 0) return
    const { free, err } = this.#freeBytes()
    const readOnly = free < freeBytesMin
    if (readOnly !== this.readOnly) {
      this.#log.warn({ free_bytes: free, read_only: readOnly, err }, spaceMessage(readOnly, err))
    }
    this.status.readOnly = readOnly
  }

  /** The free space; 0 if the disk does not report it. */
  #freeBytes(): { free: number; err?: Error } {
    try {
      return { free: freeBytesOf(this.#settings) }
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return { free: 0, err: error }
    }
  }
}

function spaceMessage(readOnly: boolean, err: Error | undefined): string {
  if (err !== undefined) return 'free disk space cannot be determined: writes are refused'
  return readOnly
    ? 'free disk space is below SERVICE_MIN_FREE_BYTES: writes are refused'
    : 'free disk space is sufficient again: writes are accepted'
}
