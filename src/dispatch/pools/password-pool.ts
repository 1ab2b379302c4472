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

/** The size and the listener of the pool. Tests use a small pool. */
export interface PasswordPoolOptions {
  threads?: number
  /** The most passwords that wait for a thread. */
  queueMax?: number
  listener?: PoolListener
}

const full = refuse('overloaded', 'Too many passwords are waiting to be hashed, try again', {
  retryAfterSecs: 1,
})

/**
 * A pool of low-priority threads that hash and compare passwords (docs/adr/0010-auth-state.md). A password is
 * refused immediately when the bounded queue is full (`overloaded`), and when no thread can be started or the
 * pool is closing (`unavailable`).
 */
export class PasswordPool {
  readonly #pool: ThreadPool
  readonly #queueMax: number

  constructor(settings: PasswordSettings, options: PasswordPoolOptions = {}) {
    const { threads = Math.min(availableParallelism(), limits.passwordThreadsMax), listener } = options
    this.#queueMax = options.queueMax ?? limits.passwordQueueMax
    this.#pool = new ThreadPool({
      name: 'passwords',
      file: workerEntry('password'),
      workerData: settings,
      threads,
      niced: true,
      idleMs: limits.passwordIdleMs,
      waitMs: limits.poolWaitMs,
      ...(listener !== undefined && { listener }),
    })
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  /** @returns the hash in PHC form */
  hash(task: HashTask): Promise<string | Refusal> {
    return this.#run('hashPassword', task)
  }

  /** Compares a password with a hash; without a hash, takes the same time and does not match. */
  verify(task: VerifyTask): Promise<Verification | Refusal> {
    return this.#run('verifyPassword', task)
  }

  /** Ends the threads, each after its task. Queued tasks are refused. */
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
