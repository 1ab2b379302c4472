import { RefusedError, refuse } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { workerEntry } from '../../base/worker-entry.js'
import {
  otlpAnswers,
  type OtlpDecoder,
  type OtlpFault,
  type OtlpLines,
  type OtlpTask,
} from '../../protocol/otlp-tasks.js'
import { answerOf } from '../../protocol/pool-tasks.js'
import { ThreadPool, type PoolFigures, type PoolListener } from './thread-pool.js'

const full = new RefusedError(
  refuse('overloaded', 'Too many OTLP requests are waiting to be decoded, try again', { retryAfterSecs: 1 }),
)

/**
 * A pool of threads that decode OTLP requests, so that a hostile one costs the front nothing
 * (docs/adr/0049-otlp.md). A thread starts with the first request.
 */
export class OtlpPool implements OtlpDecoder {
  readonly #pool: ThreadPool

  constructor(listener?: PoolListener) {
    this.#pool = new ThreadPool({
      name: 'otlp',
      file: workerEntry('otlp'),
      threads: limits.otlpThreadsMax,
      niced: false,
      idleMs: limits.otlpIdleMs,
      waitMs: limits.poolWaitMs,
      ...(listener !== undefined && { listener }),
    })
  }

  get figures(): PoolFigures {
    return this.#pool.figures
  }

  async decode(task: OtlpTask): Promise<OtlpLines | OtlpFault> {
    if (this.#pool.waiting >= limits.otlpQueueMax) throw full
    const found = await this.#pool.run(task, { name: 'otlpLines', deadlineMs: limits.otlpTaskMs })
    return answerOf(otlpAnswers.otlpLines, found)
  }

  /** Ends the threads, each after its task. */
  close(): Promise<void> {
    return this.#pool.close()
  }
}
