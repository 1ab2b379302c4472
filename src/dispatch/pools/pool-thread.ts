import { setTimeout as delay } from 'node:timers/promises'
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
  /** How long a thread may take to start, milliseconds. */
  startMs?: number
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

/** Why a thread did not finish a task: it did not start, it died, the task took too long, or it was to end before. */
export type ThreadEnd = 'unstarted' | 'died' | 'hung' | 'ending'

/** Thrown if the thread failed and not the task. */
export class ThreadFault extends Error {
  readonly how: ThreadEnd

  constructor(how: ThreadEnd, cause?: unknown) {
    super(`The thread ${texts[how]}`, { cause })
    this.how = how
  }
}

const texts = {
  unstarted: 'did not start',
  died: 'died in the middle of its task',
  hung: 'did not come to the end of its task in time and was ended',
  ending: 'was to end before it had begun its task',
} as const

/**
 * One place for a thread in a pool, with one task at a time. The thread is started with the first task, and again with
 * the next task after it has ended. Piscina by itself loses a task whose thread does not start, so each instance gets
 * one thread and one task, and is discarded with both if anything goes wrong.
 */
export class PoolThread {
  readonly #settings: ThreadSettings
  #piscina: Piscina | undefined
  /** The thread has loaded its module. */
  #started = false
  /** How the thread was lost since the current task began. */
  #lostAs: ThreadEnd | undefined
  /** Gives the current task up. */
  #breakOff: ((fault: ThreadFault) => void) | undefined
  /** Settles when its task has ended, or was given up. */
  #underWay: Promise<unknown> = Promise.resolve()
  /** Threads that have not ended yet; more than one only while an older one is ending. */
  readonly #alive = new Map<Worker, Promise<void>>()
  #ending: Promise<void> | undefined

  constructor(settings: ThreadSettings) {
    this.#settings = settings
  }

  /** Whether a thread waits for a task or works on one. */
  get works(): boolean {
    return this.#started && this.#ending === undefined
  }

  /** Settles when it can take a task again; undefined when it can now. */
  get ending(): Promise<void> | undefined {
    return this.#ending
  }

  /** @throws ThreadFault, or what the task throws */
  async run(task: object, { name, deadlineMs, steps = noSteps }: TaskRun): Promise<unknown> {
    if (this.#ending !== undefined) throw new ThreadFault('ending')
    this.#lostAs = undefined
    const broken = new Promise<never>((_resolve, reject) => (this.#breakOff = reject))
    // It may be aborted before anyone waits for that.
    broken.catch(() => undefined)
    const watch = setInterval(this.#look(deadlineMs, steps), limits.poolLookMs)
    try {
      const piscina = (this.#piscina ??= this.#open())
      const found: Promise<unknown> = piscina.run(task, { name })
      for (const worker of piscina.threads) this.#watchEnd(worker)
      this.#underWay = Promise.race([found, broken])
      return await this.#underWay
    } catch (error) {
      // If the task threw, its thread works and stays for the next one.
      if (this.#started && !(error instanceof ThreadFault)) throw error
      this.#ending ??= this.#discard()
      throw error instanceof ThreadFault ? error : new ThreadFault(this.#lostAs ?? 'unstarted', error)
    } finally {
      clearInterval(watch)
      this.#breakOff = undefined
    }
  }

  /**
   * Waits for the current task, and ends the thread. Resolves when no thread is left. A task has as long as it may take anyway,
   * since a thread that is ended while it opens a store takes the process along (docs/upstream/node-require-terminate.md).
   */
  end(): Promise<void> {
    this.#ending ??= this.#endAfterTask()
    return this.#ending
  }

  async #endAfterTask(): Promise<void> {
    await Promise.allSettled([this.#underWay])
    await this.#discard()
  }

  #look(deadlineMs: number, steps: () => number): () => void {
    const startMs = this.#settings.startMs ?? limits.poolStartMs
    const watchdog = new Watchdog(limits.poolLookMs)
    return () => {
      // To have started is a step.
      const now = this.#started ? 1 + steps() : 0
      const silentMs = watchdog.look({ nowMs: steadyClock(), waiting: true, steps: now })
      if (silentMs < (this.#started ? deadlineMs : startMs)) return
      this.#breakOff?.(new ThreadFault(this.#started ? 'hung' : 'unstarted'))
    }
  }

  #open(): Piscina {
    const { file, workerData, niced, idleMs } = this.#settings
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
    piscina.on('error', (error: Error) => this.#lost(piscina, error))
    piscina.on('workerCreate', () => (this.#started = this.#piscina === piscina))
    piscina.on('workerDestroy', () => this.#lost(piscina))
    return piscina
  }

  /** The thread has ended, or will at once. An idle one gets no successor before there is a task. */
  #lost(piscina: Piscina, error?: Error): void {
    if (this.#piscina !== piscina) return
    const how = (this.#lostAs ??= this.#started ? 'died' : 'unstarted')
    this.#started = false
    if (error !== undefined) this.#breakOff?.(new ThreadFault(how, error))
    // The reason is reported after the end of the thread, if at all.
    else setImmediate((breakOff) => breakOff?.(new ThreadFault(how)), this.#breakOff)
  }

  #watchEnd(worker: Worker): void {
    if (this.#alive.has(worker)) return
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    this.#alive.set(
      worker,
      ended.then(() => void this.#alive.delete(worker)),
    )
  }

  /**
   * Waits until the thread has loaded its module, or has ended, or had some time for that. Where a thread is ended in the
   * middle of it, Node and native modules end the whole process (docs/upstream/node-require-terminate.md).
   */
  async #loaded(piscina: Piscina): Promise<void> {
    if (this.#started || this.#alive.size === 0) return
    const abort = new AbortController()
    const late = delay(limits.poolLoadMs, undefined, { signal: abort.signal })
    const created = new Promise<void>((resolve) => piscina.once('workerCreate', () => resolve()))
    await Promise.race([created, ...this.#alive.values(), late.catch(() => undefined)])
    abort.abort()
  }

  /** Ends the thread; resolves when it has ended. A thread in a system call does not end before the call returns. */
  async #discard(): Promise<void> {
    const piscina = this.#piscina
    if (piscina !== undefined) await this.#loaded(piscina)
    this.#piscina = undefined
    this.#started = false
    await piscina?.destroy()
    await Promise.all(this.#alive.values())
    this.#ending = undefined
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

function noSteps(): number {
  return 0
}
