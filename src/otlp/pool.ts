import { CallerTurns } from '../base/caller-turns.js'
import { RefusedError, refuse } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import { workerEntry } from '../base/worker-entry.js'
import {
  memoryOf,
  isOtlpAnswer,
  type OtlpCall,
  type OtlpDecoder,
  type OtlpFault,
  type OtlpPart,
} from './tasks.js'
import { answerOf } from '../protocol/pool-tasks.js'
import { ThreadPool, type PoolFigures, type PoolListener } from '../dispatch/pools/thread-pool.js'

const full = refuse('overloaded', 'Too many OTLP requests are waiting to be decoded, try again', {
  retryAfterSecs: 1,
})
const gone = refuse('unavailable', 'The request was cancelled')

/**
 * A pool of threads that decode OTLP requests, so that a hostile one costs the front nothing
 * (docs/adr/0049-otlp.md). Holders of requests take turns. A thread starts with the first request.
 */
export class OtlpPool implements OtlpDecoder {
  readonly #pool: ThreadPool
  readonly #turns = new CallerTurns<() => void>()
  #running = 0

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
    const { figures } = this.#pool
    return { ...figures, waiting: figures.waiting + this.#turns.length }
  }

  /** Runs a task when it is its turn, unless its request was cancelled by then. */
  async decode(call: OtlpCall): Promise<OtlpPart | OtlpFault> {
    const { task, holder } = call
    if (this.#running < limits.otlpThreadsMax) this.#running++
    else {
      // A request with some lines written is not refused: its first part was accepted.
      if (task.from === undefined && this.#turns.length >= limits.otlpQueueMax) throw new RefusedError(full)
      await new Promise<void>((resolve) => this.#turns.push(holder, resolve))
    }
    try {
      if (Atomics.load(call.gone, 0) === 1) throw new RefusedError(gone)
      const how = { name: 'otlpLines', deadlineMs: limits.otlpTaskMs, transfer: memoryOf(task) }
      return answerOf(isOtlpAnswer, await this.#pool.run(task, how))
    } finally {
      const next = this.#turns.take()
      if (next === undefined) this.#running--
      else next()
    }
  }

  /** Ends the threads, each after its task. */
  close(): Promise<void> {
    return this.#pool.close()
  }
}
