import { setTimeout as delay } from 'node:timers/promises'
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

/** A task that waits for a thread, or has one. */
interface PooledTask {
  task: object
  how: PoolTaskRun
  /** Until when it waits. */
  untilMs: number
  /** Refuses it then. */
  late: NodeJS.Timeout | undefined
  resolve(found: unknown): void
  reject(error: unknown): void
}

/**
 * Threads that carry out tasks, each of which has a deadline. If a thread does not start, the start is tried again
 * while its task waits. A thread that dies or hangs is ended and then replaced; its task is refused with 503.
 */
export class ThreadPool {
  readonly #settings: PoolSettings
  readonly #threads: PoolThread[]
  /** Threads without a task, the last used one at the end, so that threads that are not needed reach their idle time. */
  readonly #free: PoolThread[]
  readonly #waiting: PooledTask[] = []
  #failedInRow = 0
  /** Why the last start failed, until one succeeds. */
  #fault: Error | undefined
  #toldFault = false
  #probing = false
  readonly #closing = new AbortController()
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
    return this.#fault === undefined && this.#threads.some((thread) => !thread.isEnding)
  }

  get figures(): PoolFigures {
    return { name: this.#settings.name, serving: this.serving, waiting: this.waiting, ...this.#counts }
  }

  /**
   * Runs a task in the first thread that is free. The caller checks the answer.
   * @throws RefusedError when no thread could run it, `Skipped`, or what the task throws
   */
  run(task: object, how: PoolTaskRun): Promise<unknown> {
    const untilMs = performance.now() + (this.#settings.waitMs ?? Number.POSITIVE_INFINITY)
    return new Promise((resolve, reject) => {
      this.#wait({ task, how, untilMs, late: undefined, resolve, reject })
      this.#next()
    })
  }

  /** Replaces all threads, each after its task. Resolves when the present ones have ended. */
  async renew(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end()))
  }

  /** Ends all threads, each after its task. Waiting tasks are refused. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const waiting of this.#waiting.splice(0)) {
      clearTimeout(waiting.late)
      waiting.reject(closed())
    }
    await this.renew()
  }

  /** @param at its place in the queue */
  #wait(pooled: PooledTask, at = this.#waiting.length): void {
    if (this.#closing.signal.aborted) return pooled.reject(closed())
    this.#waiting.splice(at, 0, pooled)
    if (pooled.untilMs === Number.POSITIVE_INFINITY) return
    pooled.late = setTimeout(() => this.#late(pooled), Math.max(0, pooled.untilMs - performance.now()))
  }

  #late(pooled: PooledTask): void {
    this.#waiting.splice(this.#waiting.indexOf(pooled), 1)
    const refusal = this.serving
      ? refuse('overloaded', 'Too many requests wait for this work, try again', {
          retryAfterSecs: 1,
        })
      : refuse('unavailable', 'The server cannot start a thread for this, try again', { retryAfterSecs: 1 })
    pooled.reject(new RefusedError(refusal, this.#fault))
  }

  /** Gives the tasks that have waited longest to the threads that are free. */
  #next(): void {
    for (;;) {
      const [pooled] = this.#waiting
      const thread = pooled && this.#free.pop()
      if (pooled === undefined || thread === undefined) return
      this.#waiting.shift()
      clearTimeout(pooled.late)
      void this.#carryOut(pooled, thread).finally(() => {
        this.#free.push(thread)
        this.#next()
      })
    }
  }

  async #carryOut(pooled: PooledTask, thread: PoolThread): Promise<void> {
    const { task, how, resolve, reject } = pooled
    try {
      await thread.free()
      if (this.#closing.signal.aborted) return reject(closed())
      if (how.unless?.() === true) return reject(new Skipped('The task was not begun'))
      const found = await thread.run(task, how)
      this.#worked()
      resolve(found)
    } catch (error) {
      if (!(error instanceof ThreadFault)) return reject(error)
      if (this.#closing.signal.aborted) return reject(closed())
      if (error.how !== 'unstarted') {
        reject(this.#ended(error))
        return thread.free()
      }
      const pauseMs = this.#unstarted(error)
      // It waits for the next thread, before all others.
      this.#wait(pooled, 0)
      this.#next()
      await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
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
    while (this.#fault !== undefined && !this.#closing.signal.aborted) {
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
