import { availableParallelism } from 'node:os'
import { workerEntry } from '../../base/worker-entry.js'
import { refusalOf, refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import {
  passwordAnswers,
  type HashTask,
  type PasswordSettings,
  type PasswordTasks,
  type Verification,
  type VerifyTask,
} from '../../protocol/password-tasks.js'
import { answerOf } from '../../protocol/pool-tasks.js'
import { ThreadPool, type PoolFigures, type PoolListener } from './thread-pool.js'

/** The size of the pool, and its listener. Tests make it small. */
export interface PasswordPoolOptions {
  threads?: number
  /** Passwords that wait for a thread. */
  queueMax?: number
  told?: PoolListener
}

const full = refuse('overloaded', 'Too many passwords wait to be hashed, try again', {
  retryAfterSecs: 1,
})

/**
 * The pool of low-priority threads that hash passwords and compare them with hashes (docs/adr/0010-auth-state.md). Its
 * queue is bounded: when it is full, a password is refused at once (`overloaded`), as it is when no thread can be
 * started and while closing (`unavailable`).
 */
export class PasswordPool {
  readonly #pool: ThreadPool
  readonly #queueMax: number

  constructor(settings: PasswordSettings, options: PasswordPoolOptions = {}) {
    const { threads = Math.min(availableParallelism(), limits.passwordThreadsMax), told } = options
    this.#queueMax = options.queueMax ?? limits.passwordQueueMax
    this.#pool = new ThreadPool({
      name: 'passwords',
      file: workerEntry('password'),
      workerData: settings,
      threads,
      niced: true,
      idleMs: limits.passwordIdleMs,
      waitMs: limits.poolWaitMs,
      ...(told !== undefined && { told }),
    })
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  /** @returns the hash in PHC form */
  hash(task: HashTask): Promise<string | Refusal> {
    return this.#run('hashPassword', task)
  }

  /** Compares with a hash; without one, takes the same time and does not match. */
  verify(task: VerifyTask): Promise<Verification | Refusal> {
    return this.#run('verifyPassword', task)
  }

  /** Ends the threads, each after its task. Waiting tasks are refused. */
  close(): Promise<void> {
    return this.#pool.close()
  }

  async #run<Name extends keyof PasswordTasks>(
    name: Name,
    task: PasswordTasks[Name]['task'],
  ): Promise<PasswordTasks[Name]['found'] | Refusal> {
    if (this.#pool.waiting >= this.#queueMax) return full
    try {
      const found = await this.#pool.run(task, { name, deadlineMs: limits.passwordTaskMs })
      return answerOf(passwordAnswers[name], found)
    } catch (error) {
      return refusalOf(error)
    }
  }
}
