import { RefusedError, refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { PoolThread, ThreadFault, type TaskRun, type ThreadSettings } from './pool-thread.js'

/** Called when threads of a pool fail. */
export interface PoolListener {
  /** No thread could be started, and none works; called once until `serves`. The pool keeps trying. */
  failed(pool: string, error: Error): void
  /** A thread can be started again. */
  serves(pool: string): void
  /** A thread died, or took too long for a task and was ended. */
  ended(pool: string, error: Error): void
}

/** Settings of a pool. */
export interface PoolSettings extends ThreadSettings {
  /** Its name in logs and metrics. */
  name: string
  threads: number
  /** How long a task waits for a thread, milliseconds; forever unless given. */
  waitMs?: number
  told?: PoolListener
}

/** How a task of a pool is carried out. */
export interface PoolTaskRun extends TaskRun {
  /** Called when a thread is free for the task: if it returns true, the task is not begun and `Skipped` is thrown. */
  unless?(): boolean
}

/** Figures of a pool, for metrics. */
export interface PoolFigures {
  name: string
  serving: boolean
  /** Tasks that wait for a thread. */
  waiting: number
  failedStarts: number
  /** Threads that took too long for a task and were ended. */
  hangs: number
  deaths: number
}

/** A task was not begun. */
export class Skipped extends Error {}

interface Waiter {
  take(thread: PoolThread): void
  refuse(error: Error): void
}

/** A place in the queue for a thread: `first` is before all others. */
interface Place {
  untilMs: number
  first: boolean
}

/**
 * Threads that carry out tasks, each of which has a deadline. If a thread does not start, the start is tried again
 * while its task waits. A thread that dies or hangs is ended and then replaced; its task is refused with 503.
 */
export class ThreadPool {
  readonly #settings: PoolSettings
  readonly #threads: PoolThread[]
  /**
   * Threads without a task, the last used one at the end, so that threads that are not needed reach their idle time.
   */
  readonly #free: PoolThread[]
  readonly #waiting: Waiter[] = []
  readonly #pauses = new Map<NodeJS.Timeout, () => void>()
  #failedInRow = 0
  /** Why the last start failed, until one succeeds. */
  #fault: Error | undefined
  #toldFault = false
  #probing = false
  #closing = false
  readonly #counts = { failedStarts: 0, hangs: 0, deaths: 0 }

  constructor(settings: PoolSettings) {
    this.#settings = settings
    this.#threads = Array.from({ length: settings.threads }, () => new PoolThread(settings))
    this.#free = [...this.#threads]
  }

  /** Tasks that wait for a thread. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** False while no thread works and none can be started. */
  get serving(): boolean {
    if (this.#threads.some((thread) => thread.works)) return true
    return this.#fault === undefined && this.#threads.some((thread) => thread.ending === undefined)
  }

  get figures(): PoolFigures {
    return { name: this.#settings.name, serving: this.serving, waiting: this.waiting, ...this.#counts }
  }

  /**
   * Runs a task in the first thread that is free. The caller checks the answer.
   * @throws RefusedError when no thread could run it, `Skipped`, or what the task throws
   */
  async run(task: object, how: PoolTaskRun): Promise<unknown> {
    const untilMs = performance.now() + (this.#settings.waitMs ?? Number.POSITIVE_INFINITY)
    for (let first = false; ; first = true) {
      const thread = await this.#take({ untilMs, first })
      let pauseMs = 0
      try {
        if (how.unless?.() === true) throw new Skipped('The task was not begun')
        const found = await thread.run(task, how)
        this.#worked()
        return found
      } catch (error) {
        if (!(error instanceof ThreadFault)) throw error
        if (this.#closing) throw closed()
        if (error.how === 'unstarted') pauseMs = this.#unstarted(error)
        // It has not begun, and waits for the next thread.
        else if (error.how !== 'ending') throw this.#ended(error)
      } finally {
        this.#giveBack(thread, pauseMs)
      }
    }
  }

  /** Replaces all threads, each after its task. Resolves when the present ones have ended. */
  async renew(): Promise<void> {
    const idle = this.#free.splice(0)
    const ended = this.#threads.map((thread) => thread.end())
    for (const thread of idle) this.#giveBack(thread, 0)
    await Promise.all(ended)
  }

  /** Ends all threads, each after its task. Waiting tasks are refused. */
  async close(): Promise<void> {
    this.#closing = true
    for (const waiter of this.#waiting.splice(0)) waiter.refuse(closed())
    for (const [timer, resume] of this.#pauses) {
      clearTimeout(timer)
      resume()
    }
    await Promise.all(this.#threads.map((thread) => thread.end()))
  }

  #take({ untilMs, first }: Place): Promise<PoolThread> | PoolThread {
    if (this.#closing) throw closed()
    const free = this.#free.pop()
    if (free !== undefined) return free
    return new Promise((resolve, reject) => {
      const late = () => this.#late(waiter)
      const leftMs = Math.max(0, untilMs - performance.now())
      const timer = leftMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(late, leftMs)
      const waiter: Waiter = {
        take(thread) {
          clearTimeout(timer)
          resolve(thread)
        },
        refuse(error) {
          clearTimeout(timer)
          reject(error)
        },
      }
      if (first) this.#waiting.unshift(waiter)
      else this.#waiting.push(waiter)
    })
  }

  #late(waiter: Waiter): void {
    this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
    const refusal = this.serving
      ? refuse('overloaded', 'Too many requests wait for this work, try again', {
          retryAfterSecs: 1,
        })
      : refuse('unavailable', 'The server cannot start a thread for this, try again', { retryAfterSecs: 1 })
    waiter.refuse(new RefusedError(refusal, this.#fault))
  }

  /** Gives a thread to the task that has waited longest, once the thread can take one. */
  #giveBack(thread: PoolThread, pauseMs: number): void {
    const { ending } = thread
    if (ending !== undefined) void ending.then(() => this.#giveBack(thread, pauseMs))
    else if (pauseMs > 0) this.#pause(pauseMs, () => this.#giveBack(thread, 0))
    else {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free.push(thread)
      else next.take(thread)
    }
  }

  #pause(pauseMs: number, resume: () => void): void {
    const timer = setTimeout(() => {
      this.#pauses.delete(timer)
      resume()
    }, pauseMs)
    this.#pauses.set(timer, resume)
  }

  /** @returns how long to wait before its next start, milliseconds */
  #unstarted(error: ThreadFault): number {
    this.#counts.failedStarts++
    const cause = error.cause instanceof Error ? error.cause : error
    this.#fault = cause
    if (!this.#toldFault && !this.serving) {
      this.#toldFault = true
      this.#settings.told?.failed(this.#settings.name, cause)
    }
    if (!this.#probing) void this.#probe()
    return Math.min(limits.poolRetryMaxMs, limits.poolRetryBaseMs * 2 ** Math.min(this.#failedInRow++, 10))
  }

  /** Keeps trying to start a thread when there are no tasks any more, to notice when it is possible again. */
  async #probe(): Promise<void> {
    this.#probing = true
    while (this.#fault !== undefined && !this.#closing) {
      await this.run({}, { name: 'begin', deadlineMs: limits.poolStartMs }).catch(() => undefined)
    }
    this.#probing = false
  }

  #worked(): void {
    this.#failedInRow = 0
    this.#fault = undefined
    if (!this.#toldFault) return
    this.#toldFault = false
    this.#settings.told?.serves(this.#settings.name)
  }

  #ended(error: ThreadFault): RefusedError {
    if (error.how === 'hung') this.#counts.hangs++
    else this.#counts.deaths++
    this.#settings.told?.ended(this.#settings.name, error)
    const detail = 'The thread that worked on this ended before it was done, try again'
    return new RefusedError(refuse('unavailable', detail, { retryAfterSecs: 1 }), error)
  }
}

function closed(): RefusedError {
  return new RefusedError(refuse('unavailable', 'The server is stopping'))
}
