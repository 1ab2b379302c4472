import { Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { assert } from '../../base/assert.js'
import type { LogChannel } from '../../protocol/cluster-log-messages.js'
import {
  type FollowerOrder,
  type FollowerSettings,
  type FollowerReport,
  isFollowerReport,
} from '../../protocol/follower-messages.js'

interface FollowerParts {
  settings: FollowerSettings
  onReport(report: Exclude<FollowerReport, { kind: 'released' }>): void
  /** The thread ended unexpectedly. */
  died(error: Error): void
}

/** The thread that keeps the stores of shards owned by other nodes up to date with their logs. */
export class Follower {
  readonly #worker: Worker
  readonly #ended: Promise<void>
  /** Callbacks of pending releases, in the order of the requests. */
  readonly #releases = new Map<number, (() => void)[]>()
  #stopping = false

  constructor({ settings, onReport, died }: FollowerParts) {
    this.#worker = new Worker(workerEntry('follower'), {
      workerData: settings,
      name: 'follower',
    })
    let failure: Error | undefined
    this.#worker.on('message', (message: unknown) => {
      assert(isFollowerReport(message), 'a follower sends reports of this version')
      if (message.kind === 'released') this.#released(message.shard)
      else onReport(message)
    })
    this.#worker.on('error', (error: Error) => (failure = error))
    this.#ended = new Promise((resolve) =>
      this.#worker.once('exit', (code) => {
        if (!this.#stopping) died(failure ?? new Error(`The follower thread ended with exit code ${code}`))
        for (const released of [...this.#releases.values()].flat()) released()
        resolve()
      }),
    )
  }

  /** Starts following with a store that nothing else has open. */
  follow(path: string, channel: LogChannel): void {
    this.#order({ kind: 'follow', path, channel }, [channel.port])
  }

  /** Closes a store; resolves when others may open it. */
  async release(shard: number): Promise<void> {
    const released = new Promise<void>((resolve) => {
      this.#releases.set(shard, [...(this.#releases.get(shard) ?? []), resolve])
    })
    this.#order({ kind: 'release', shard })
    await released
  }

  /** Removes a store that nothing has open. */
  remove(path: string): void {
    this.#order({ kind: 'remove', path })
  }

  /** Closes all stores; resolves when others may open them. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#order({ kind: 'stop' })
    await this.#ended
  }

  #released(shard: number): void {
    this.#releases.get(shard)?.shift()?.()
  }

  #order(order: FollowerOrder, transfer: readonly LogChannel['port'][] = []): void {
    this.#worker.postMessage(order, transfer)
  }
}
