import { backoffMs } from '../../base/backoff.js'
import { setTimeout as delay } from 'node:timers/promises'
import { CallerTurns } from '../../base/caller-turns.js'
import { RefusedError, refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { PoolThread, ThreadFault, type TaskRun, type ThreadSettings } from './pool-thread.js'

/** Receives reports of failing threads. */
export interface PoolListener {
  /** No thread runs and none can be started. Called once until `serves`; the pool keeps trying. */
  failed(pool: string, error: Error): void
  /** A thread could be started again. */
  serves(pool: string): void
  /** A thread died, or took too long for a task and was ended. */
  ended(pool: string, error: Error): void
}

export interface PoolSettings extends ThreadSettings {
  /** Its name in logs and metrics. */
  name: string
  threads: number
  /** How long a task waits for a thread, milliseconds; without limit when absent. */
  waitMs?: number
  listener?: PoolListener
}

export interface PoolTaskRun extends TaskRun {
  /** Who waits for the task: callers take turns. Empty for the server itself. */
  caller?: string
  /**
   * Called when a thread is free for the task. If it returns true, the task does not start and `Skipped` is
   * thrown.
   */
  unless?(): boolean
}

export interface PoolFigures {
  name: string
  serving: boolean
  waiting: number
  failedStarts: number
  /** Threads that took too long for a task and were ended. */
  hangs: number
  deaths: number
}

/** The task did not start. */
export class Skipped extends Error {}

interface PooledTask {
  task: object
  how: PoolTaskRun
  /** The end of its wait, by `performance.now`. */
  untilMs: number
  /** The timer that refuses it then. */
  late: NodeJS.Timeout | undefined
  resolve(found: unknown): void
  reject(error: unknown): void
}

/**
 * A pool of threads that run tasks with deadlines. A failed start is retried while its task waits. A thread
 * that dies or hangs is replaced, and its task is refused with 503.
 */
export class ThreadPool {
  readonly #settings: PoolSettings
  readonly #threads: PoolThread[]
  /** Idle threads, the last used one at the end, so that surplus threads reach their idle time. */
  readonly #free: PoolThread[]
  readonly #waiting = new CallerTurns<PooledTask>()
  /** Tasks whose thread did not start, which precede the others. */
  readonly #again: PooledTask[] = []
  #failedInRow = 0
  /** Why the last start failed, until one succeeds. */
  #fault: Error | undefined
  #isFaultReported = false
  #probing = false
  readonly #closing = new AbortController()
  readonly #counts = { failedStarts: 0, hangs: 0, deaths: 0 }

  constructor(settings: PoolSettings) {
    this.#settings = settings
    this.#threads = Array.from({ length: settings.threads }, () => new PoolThread(settings))
    this.#free = [...this.#threads]
  }

  get waiting(): number {
    return this.#again.length + this.#waiting.length
  }

  /** False while no thread runs and none can be started. */
  get serving(): boolean {
    if (this.#threads.some((thread) => thread.works)) return true
    return this.#fault === undefined && this.#threads.some((thread) => !thread.isEnding)
  }

  get figures(): PoolFigures {
    return { name: this.#settings.name, serving: this.serving, waiting: this.waiting, ...this.#counts }
  }

  /**
   * Runs a task in the first free thread, in its caller's turn. The caller checks the answer.
   * @throws RefusedError when no thread could run it, `Skipped`, or the error of the task
   */
  run(task: object, how: PoolTaskRun): Promise<unknown> {
    const untilMs = performance.now() + (this.#settings.waitMs ?? Number.POSITIVE_INFINITY)
    return new Promise((resolve, reject) => {
      this.#wait({ task, how, untilMs, late: undefined, resolve, reject })
      this.#next()
    })
  }

  /** Replaces all threads, each after its task. Resolves when the old ones have ended. */
  async renew(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.end()))
  }

  /** Ends all threads, each after its task. Queued tasks are refused. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const waiting of [...this.#again.splice(0), ...this.#waiting.takeAll()]) {
      clearTimeout(waiting.late)
      waiting.reject(closed())
    }
    await this.renew()
  }

  #wait(pooled: PooledTask, { again = false } = {}): void {
    if (this.#closing.signal.aborted) return pooled.reject(closed())
    if (again) this.#again.unshift(pooled)
    else this.#waiting.push(pooled.how.caller ?? '', pooled)
    if (pooled.untilMs === Number.POSITIVE_INFINITY) return
    pooled.late = setTimeout(() => this.#late(pooled), Math.max(0, pooled.untilMs - performance.now()))
  }

  #late(pooled: PooledTask): void {
    const at = this.#again.indexOf(pooled)
    if (at === -1) this.#waiting.remove((one) => one === pooled)
    else this.#again.splice(at, 1)
    const refusal = this.serving
      ? refuse('overloaded', 'Too many requests are waiting for a worker thread, try again', {
          retryAfterSecs: 1,
        })
      : refuse('unavailable', 'The server cannot start a worker thread, try again', { retryAfterSecs: 1 })
    pooled.reject(new RefusedError(refusal, this.#fault))
  }

  /** Assigns the next tasks to free threads. */
  #next(): void {
    for (;;) {
      const thread = this.waiting === 0 ? undefined : this.#free.pop()
      const pooled = thread && (this.#again.shift() ?? this.#waiting.take())
      if (pooled === undefined || thread === undefined) return
      clearTimeout(pooled.late)
      void this.#run(pooled, thread).finally(() => {
        this.#free.push(thread)
        this.#next()
      })
    }
  }

  async #run(pooled: PooledTask, thread: PoolThread): Promise<void> {
    const { task, how, resolve, reject } = pooled
    try {
      await thread.free()
      if (this.#closing.signal.aborted) return reject(closed())
      if (how.unless?.() === true) return reject(new Skipped('The task was not begun'))
      const found = await thread.run(task, how)
      this.#succeeded()
      resolve(found)
    } catch (error) {
      if (!(error instanceof ThreadFault)) return reject(error)
      if (this.#closing.signal.aborted) return reject(closed())
      if (error.how !== 'unstarted') {
        reject(this.#ended(error))
        return thread.free()
      }
      const pauseMs = this.#unstarted(error)
      // The task is first in the queue for the next thread.
      this.#wait(pooled, { again: true })
      this.#next()
      await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
  }

  /** @returns the pause before its next start, milliseconds */
  #unstarted(error: ThreadFault): number {
    this.#counts.failedStarts++
    const cause = error.cause instanceof Error ? error.cause : error
    this.#fault = cause
    if (!this.#isFaultReported && !this.serving) {
      this.#isFaultReported = true
      this.#settings.listener?.failed(this.#settings.name, cause)
    }
    if (!this.#probing) void this.#probe()
    return backoffMs({ firstMs: limits.poolRetryBaseMs, maxMs: limits.poolRetryMaxMs }, ++this.#failedInRow)
  }

  /** Keeps trying to start a thread without tasks, to notice when this is possible again. */
  async #probe(): Promise<void> {
    this.#probing = true
    while (this.#fault !== undefined && !this.#closing.signal.aborted) {
      await this.run({}, { name: 'begin', deadlineMs: limits.poolStartMs }).catch(() => undefined)
    }
    this.#probing = false
  }

  #succeeded(): void {
    this.#failedInRow = 0
    this.#fault = undefined
    if (!this.#isFaultReported) return
    this.#isFaultReported = false
    this.#settings.listener?.serves(this.#settings.name)
  }

  #ended(error: ThreadFault): RefusedError {
    if (error.how === 'hung') this.#counts.hangs++
    else this.#counts.deaths++
    this.#settings.listener?.ended(this.#settings.name, error)
    const detail = 'The worker thread of this request ended unexpectedly, try again'
    return new RefusedError(refuse('unavailable', detail, { retryAfterSecs: 1 }), error)
  }
}

function closed(): RefusedError {
  return new RefusedError(refuse('unavailable', 'The server is stopping'))
}
