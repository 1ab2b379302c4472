import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Piscina } from 'piscina'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { HashTask, PasswordSettings, Verification, VerifyTask } from '../protocol/password-tasks.js'

/** What the pool answers: the result, or that it has no room (`overloaded`) or is closing (`unavailable`). */
export type PasswordAnswer<T> = { ok: true; value: T } | { ok: false; refusal: Refusal }

/** How large the pool is. Tests make it small. */
export interface PasswordPoolSize {
  threads: number
  /** Passwords that wait for a thread. */
  queueMax: number
}

const usualSize: PasswordPoolSize = {
  threads: Math.min(availableParallelism(), limits.passwordThreadsMax),
  queueMax: limits.passwordQueueMax,
}

const full = refuse('overloaded', 'Expected room in the queue of passwords to be hashed', {
  retryAfterSecs: 1,
})
const closing = refuse('unavailable', 'Expected a server that is not stopping')

/**
 * The pool of niced threads that hash passwords and compare them with hashes (contract.md 6.1). Its queue is bounded:
 * past that a password is refused at once.
 */
export class PasswordPool {
  readonly #pool: Piscina
  readonly #queueMax: number
  #closing = false

  constructor(settings: PasswordSettings, { threads, queueMax }: PasswordPoolSize = usualSize) {
    this.#queueMax = queueMax
    this.#pool = new Piscina({
      filename: fileURLToPath(new URL('../../workers/password.js', import.meta.url)),
      minThreads: 0,
      maxThreads: threads,
      maxQueue: queueMax,
      idleTimeout: limits.passwordIdleMs,
      niceIncrement: 10,
      workerData: settings,
    })
    // Told of answers that come while the threads are ended, and of threads that end while they do nothing; without a
    // listener they would end the process.
    this.#pool.on('error', () => {})
  }

  /** @returns the hash in PHC form */
  hash(task: HashTask): Promise<PasswordAnswer<string>> {
    return this.#run(task, 'hashPassword')
  }

  /** Compares with a hash, or without one takes as long and does not match. */
  verify(task: VerifyTask): Promise<PasswordAnswer<Verification>> {
    return this.#run(task, 'verifyPassword')
  }

  /** Ends the threads. What still waits is refused. */
  async close(): Promise<void> {
    this.#closing = true
    await this.#pool.destroy()
  }

  async #run<T>(task: HashTask | VerifyTask, name: string): Promise<PasswordAnswer<T>> {
    if (this.#closing) return { ok: false, refusal: closing }
    if (this.#pool.queueSize >= this.#queueMax) return { ok: false, refusal: full }
    try {
      const value: T = await this.#pool.run(task, { name })
      return { ok: true, value }
    } catch (error) {
      if (this.#closing) return { ok: false, refusal: closing }
      throw error
    }
  }
}
