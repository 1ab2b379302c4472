import { Worker } from 'node:worker_threads'
import type { ShardLine } from '../protocol/cluster-log-messages.js'
import {
  type FollowerSettings,
  type FollowerTold,
  isFollowerTold,
  stopFollowing,
} from '../protocol/follower-messages.js'
import { assert } from '../base/assert.js'

/** What a follower is made of. */
export interface FollowerParts {
  settings: FollowerSettings
  told(told: FollowerTold): void
  /** The thread ended by itself. */
  died(error: Error): void
}

/** The thread that keeps the stores of a node which stands by up to the logs of their shards. */
export class Follower {
  readonly #worker: Worker
  readonly #ended: Promise<void>
  #stopping = false

  constructor({ settings, told, died }: FollowerParts) {
    this.#worker = new Worker(new URL('../../workers/follower.js', import.meta.url), {
      workerData: settings,
      name: 'follower',
      transferList: settings.stores.map(({ line }: { line: ShardLine }) => line.port),
    })
    let failure: Error | undefined
    this.#worker.on('message', (message: unknown) => {
      assert(isFollowerTold(message), 'who follows tells what this version knows')
      told(message)
    })
    this.#worker.on('error', (error: Error) => (failure = error))
    this.#ended = new Promise((resolve) =>
      this.#worker.once('exit', (code) => {
        if (!this.#stopping) died(failure ?? new Error(`The thread that follows ended with ${code}`))
        resolve()
      }),
    )
  }

  /** Has it close the stores; resolves when others may open them. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#worker.postMessage(stopFollowing)
    await this.#ended
  }
}
