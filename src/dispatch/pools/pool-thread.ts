import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Worker } from 'node:worker_threads'
import { Piscina } from 'piscina'
import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import { Watchdog } from './watchdog.js'

export interface ThreadSettings {
  /** The module whose functions are the tasks. */
  file: URL
  workerData?: object
  /** Whether other threads have priority. */
  niced: boolean
  /** How long an idle thread lives, milliseconds. */
  idleMs: number
}

export interface TaskRun {
  /** The function of the module. */
  name: string
  /** The longest time without progress, milliseconds; for a task without `steps`, the longest duration. */
  deadlineMs: number
  steps?(): number
  /** Memory of the task that moves to the thread. */
  transfer?: ArrayBuffer[]
}

/** Thrown when the thread fails instead of the task: it did not start, it died, or the task took too long. */
export class ThreadFault extends Error {
  readonly how: keyof typeof texts

  constructor(how: keyof typeof texts, cause?: unknown) {
    super(`The thread ${texts[how]}`, { cause })
    this.how = how
  }
}

const texts = {
  unstarted: 'did not start',
  died: 'died during its task',
  hung: 'did not finish its task in time and was ended',
} as const

/**
 * One thread of a pool, which runs one task at a time. Piscina starts it with the first task, ends it when it
 * is idle or its task is aborted, and restarts it with the next task. With several threads in one Piscina, a
 * task could not be matched with a thread that fails to start (docs/adr/0025-hung-threads.md).
 */
export class PoolThread {
  readonly #piscina: Piscina
  /** The thread has loaded its module. */
  #isRunning = false
  #worker: Worker | undefined
  /** Resolves when this thread and all earlier ones have ended. */
  #ended: Promise<unknown> = Promise.resolve()
  #running: Promise<unknown> = Promise.resolve()
  #ending: Promise<void> | undefined
  /** Why the thread did not start. */
  #cause: Error | undefined
  #abandon: ((how: ThreadFault['how'], cause?: Error) => void) | undefined

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
    // Emitted when a thread ends without a task. Without a listener, the event would end the process.
    piscina.on('error', (error: Error) => (this.#cause = error))
    piscina.on('workerCreate', () => (this.#isRunning = true))
    piscina.on('workerDestroy', () => {
      // Piscina holds on to a task whose thread did not start. It reports the reason, if at all, after this
      // event.
      if (!this.#isRunning) setImmediate(() => this.#abandon?.('unstarted', this.#cause))
      this.#isRunning = false
    })
    this.#piscina = piscina
  }

  /** Whether the thread is running: it waits for a task or works on one. */
  get works(): boolean {
    return this.#isRunning && this.#ending === undefined
  }

  get isEnding(): boolean {
    return this.#ending !== undefined
  }

  /** Resolves when the thread can take a task. */
  async free(): Promise<void> {
    do await this.#ending
    while (this.#ending !== undefined)
  }

  /** @throws ThreadFault, or what the task throws */
  async run(task: object, { name, deadlineMs, steps = () => 0, transfer = [] }: TaskRun): Promise<unknown> {
    const abort = new AbortController()
    let fault: ThreadFault | undefined
    const abandon = (how: ThreadFault['how'], cause?: Error) => {
      fault ??= new ThreadFault(how, cause)
      abort.abort()
    }
    this.#abandon = abandon
    const watchdog = new Watchdog(limits.poolCheckMs)
    const watch = setInterval(() => {
      // The start of the thread is a step.
      const now = this.#isRunning ? 1 + steps() : 0
      const silentMs = watchdog.look({ nowMs: steadyClock(), waiting: true, steps: now })
      if (silentMs >= (this.#isRunning ? deadlineMs : limits.poolStartMs))
        abandon(this.#isRunning ? 'hung' : 'unstarted')
    }, limits.poolCheckMs)
    try {
      const found: Promise<unknown> = this.#piscina.run(task, {
        name,
        signal: abort.signal,
        transferList: transfer,
      })
      this.#running = found
      this.#watchEnd()
      return await found
    } catch (error) {
      // If the task threw, its thread still runs and takes the next task.
      if (fault === undefined && this.#isRunning) throw error
      fault ??= new ThreadFault('died', error)
      if (fault.how !== 'unstarted') this.#ending ??= this.#untilEnded()
      throw fault
    } finally {
      clearInterval(watch)
      this.#abandon = undefined
    }
  }

  /**
   * Ends the thread after its current task. Resolves when no thread is left. The task gets its whole
   * deadline, because terminating a thread that opens a store may crash the process. So may terminating one
   * that loads its module, which gets some time for that (docs/upstream/node-require-terminate.md).
   */
  end(): Promise<void> {
    this.#ending ??= this.#untilEnded(async () => {
      await Promise.allSettled([this.#running])
      if (!this.#isRunning && this.#piscina.threads.length > 0)
        await Promise.race([this.#loaded(), this.#ended])
      await this.#piscina.destroy()
    })
    return this.#ending
  }

  /** A thread in a system call ends only when the call returns. */
  async #untilEnded(end?: () => Promise<void>): Promise<void> {
    await end?.()
    await this.#ended
    this.#ending = undefined
  }

  /** Resolves when the thread has loaded its module, or its time for that is over. */
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
 * Node options for the threads: the preloads of the process, and no `require` of ES modules. With that
 * `require`, Piscina loads the module synchronously, and V8 ends the process if the thread is terminated
 * during the load (docs/upstream/node-require-terminate.md). Without it, Piscina imports the module.
 */
const threadOptions = [...preloads(process.execArgv), '--no-experimental-require-module']

/** Returns the options that preload modules. Threads refuse many other options. */
function preloads(options: readonly string[]): string[] {
  return options.flatMap((option, at) => {
    if (/^(?:--import|--require)=/.test(option)) return [option]
    return /^(?:--import|--require|-r)$/.test(option) ? options.slice(at, at + 2) : []
  })
}
