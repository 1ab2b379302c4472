import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { Watchdog } from './watchdog.js'

/** What the threads of a pool run. */
export interface ThreadSettings {
  /** The module whose functions are the tasks. */
  file: URL
  workerData?: object
  /** Whether other threads have priority. */
  niced: boolean
  /** How long a thread waits for work before it ends, milliseconds. */
  idleMs: number
}

/** How one task is carried out. */
export interface TaskRun {
  /** The function of the module. */
  name: string
  /** How long it may make no progress, milliseconds; if it has no `steps`, how long it may take in all. */
  deadlineMs: number
  /** A number that changes with each step of the task. */
  steps?(): number
}

/** Thrown if the thread failed and not the task: it did not start, it died, or the task took too long. */
export class ThreadFault extends Error {
  readonly how: keyof typeof texts

  constructor(how: keyof typeof texts, cause?: unknown) {
    super(`The thread ${texts[how]}`, { cause })
    this.how = how
  }
}

const texts = {
  unstarted: 'did not start',
  died: 'died in the middle of its task',
  hung: 'did not come to the end of its task in time and was ended',
} as const

/**
 * One thread of a pool, with one task at a time. Piscina starts it with the first task, ends it when it is idle or its
 * task is aborted, and starts it again with the next task. With more threads, a task could not be told from another one
 * whose thread does not start (docs/adr/0025-hung-threads.md).
 */
export class PoolThread {
  readonly #piscina: Piscina
  /** The thread has loaded its module. */
  #works = false
  #worker: Worker | undefined
  /** Settles when this thread and all before it have ended. */
  #ended: Promise<unknown> = Promise.resolve()
  #underWay: Promise<unknown> = Promise.resolve()
  #ending: Promise<void> | undefined
  /** Why the thread did not start. */
  #cause: Error | undefined
  #giveUp: ((how: ThreadFault['how'], cause?: Error) => void) | undefined

  constructor({ file, workerData, niced, idleMs }: ThreadSettings) {
    const piscina = new Piscina({
      filename: fileURLToPath(file),
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: idleMs,
      niceIncrement: niced ? 10 : 0,
      workerData,
      execArgv: threadOptions,
    })
    // Emitted when a thread ends before it has a task. Without a listener it would end the process.
    piscina.on('error', (error: Error) => (this.#cause = error))
    piscina.on('workerCreate', () => (this.#works = true))
    piscina.on('workerDestroy', () => {
      // Piscina keeps a task whose thread did not start. The reason is reported after this event, if at all.
      if (!this.#works) setImmediate(() => this.#giveUp?.('unstarted', this.#cause))
      this.#works = false
    })
    this.#piscina = piscina
  }

  /** Whether the thread waits for a task or works on one. */
  get works(): boolean {
    return this.#works && this.#ending === undefined
  }

  /** Whether the thread is being ended. */
  get isEnding(): boolean {
    return this.#ending !== undefined
  }

  /** Resolves when it can take a task. */
  async free(): Promise<void> {
    do await this.#ending
    while (this.#ending !== undefined)
  }

  /** @throws ThreadFault, or what the task throws */
  async run(task: object, { name, deadlineMs, steps = () => 0 }: TaskRun): Promise<unknown> {
    const abort = new AbortController()
    let fault: ThreadFault | undefined
    this.#giveUp = (how, cause) => {
      fault ??= new ThreadFault(how, cause)
      abort.abort()
    }
    const watchdog = new Watchdog(limits.poolLookMs)
    const watch = setInterval(() => {
      // To have started is a step.
      const now = this.#works ? 1 + steps() : 0
      const silentMs = watchdog.look({ nowMs: steadyClock(), waiting: true, steps: now })
      if (silentMs >= (this.#works ? deadlineMs : limits.poolStartMs))
        this.#giveUp?.(this.#works ? 'hung' : 'unstarted')
    }, limits.poolLookMs)
    try {
      const found: Promise<unknown> = this.#piscina.run(task, { name, signal: abort.signal })
      this.#underWay = found
      this.#watchEnd()
      return await found
    } catch (error) {
      // If the task threw, its thread works and stays for the next one.
      if (fault === undefined && this.#works) throw error
      fault ??= new ThreadFault('died', error)
      if (fault.how !== 'unstarted') this.#ending ??= this.#untilEnded()
      throw fault
    } finally {
      clearInterval(watch)
      this.#giveUp = undefined
    }
  }

  /**
   * Waits for the current task, and ends the thread. Resolves when no thread is left. A task has as long as it may take anyway,
   * since a thread that is ended while it opens a store takes the process along; so does one that is ended while it loads
   * its module, which has some time for that (docs/upstream/node-require-terminate.md).
   */
  end(): Promise<void> {
    this.#ending ??= this.#untilEnded(async () => {
      await Promise.allSettled([this.#underWay])
      if (!this.#works && this.#piscina.threads.length > 0) await Promise.race([this.#loaded(), this.#ended])
      await this.#piscina.destroy()
    })
    return this.#ending
  }

  /** A thread in a system call does not end before the call returns. */
  async #untilEnded(end?: () => Promise<void>): Promise<void> {
    await end?.()
    await this.#ended
    this.#ending = undefined
  }

  /** Resolves when the thread has loaded its module, or has had some time for that. */
  async #loaded(): Promise<void> {
    const signal = AbortSignal.timeout(limits.poolLoadMs)
    await once(this.#piscina, 'workerCreate', { signal }).catch(() => undefined)
  }

  #watchEnd(): void {
    const [worker] = this.#piscina.threads
    if (worker === undefined || worker === this.#worker) return
    this.#worker = worker
    this.#ended = Promise.all([this.#ended, new Promise((resolve) => worker.once('exit', resolve))])
  }
}

/**
 * Options of Node for the threads: modules that the process was started with, as a thread without options of its own
 * has them, and no `require` of ES modules. By that Piscina would load the module first, and V8 ends the whole process
 * where a thread is ended meanwhile (docs/upstream/node-require-terminate.md); without it, Piscina imports the module.
 */
const threadOptions = [...preloads(process.execArgv), '--no-experimental-require-module']

/** The options that name modules to be loaded first. Many of the others a thread refuses. */
function preloads(options: readonly string[]): string[] {
  return options.flatMap((option, at) => {
    if (/^(?:--import|--require)=/.test(option)) return [option]
    return /^(?:--import|--require|-r)$/.test(option) ? options.slice(at, at + 2) : []
  })
}
