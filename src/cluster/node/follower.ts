import { Worker } from 'node:worker_threads'
import { workerEntry } from '../../base/worker-entry.js'
import { assert } from '../../base/assert.js'
import type { ShardLine } from '../../protocol/cluster-log-messages.js'
import {
  type FollowerOrder,
  type FollowerSettings,
  type FollowerReport,
  isFollowerReport,
} from '../../protocol/follower-messages.js'

/** What a follower is made of. */
interface FollowerParts {
  settings: FollowerSettings
  told(told: Exclude<FollowerReport, { kind: 'released' }>): void
  /** The thread ended by itself. */
  died(error: Error): void
}

/** The thread that keeps the stores of shards which other nodes own up to their logs. */
export class Follower {
  readonly #worker: Worker
  readonly #ended: Promise<void>
  /** Who waits for a store to be closed, in the order in which they asked. */
  readonly #releases = new Map<number, (() => void)[]>()
  #stopping = false

  constructor({ settings, told, died }: FollowerParts) {
    this.#worker = new Worker(workerEntry('follower'), {
      workerData: settings,
      name: 'follower',
    })
    let failure: Error | undefined
    this.#worker.on('message', (message: unknown) => {
      assert(isFollowerReport(message), 'who follows tells what this version knows')
      if (message.kind === 'released') this.#released(message.shard)
      else told(message)
    })
    this.#worker.on('error', (error: Error) => (failure = error))
    this.#ended = new Promise((resolve) =>
      this.#worker.once('exit', (code) => {
        if (!this.#stopping) died(failure ?? new Error(`The thread that follows ended with ${code}`))
        for (const released of [...this.#releases.values()].flat()) released()
        resolve()
      }),
    )
  }

  /** Has it keep a store up to date, which nobody else has open. */
  follow(path: string, line: ShardLine): void {
    this.#order({ kind: 'follow', path, line }, [line.port])
  }

  /** Has it close a store; resolves when others may open it. */
  async release(shard: number): Promise<void> {
    const released = new Promise<void>((resolve) => {
      this.#releases.set(shard, [...(this.#releases.get(shard) ?? []), resolve])
    })
    this.#order({ kind: 'release', shard })
    await released
  }

  /** Has it remove a store that nobody has open. */
  remove(path: string): void {
    this.#order({ kind: 'remove', path })
  }

  /** Has it close all stores; resolves when others may open them. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#order({ kind: 'stop' })
    await this.#ended
  }

  #released(shard: number): void {
    this.#releases.get(shard)?.shift()?.()
  }

  #order(order: FollowerOrder, transfer: readonly ShardLine['port'][] = []): void {
    this.#worker.postMessage(order, transfer)
  }
}
