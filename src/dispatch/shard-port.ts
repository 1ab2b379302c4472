import { Worker } from 'node:worker_threads'
import { assert } from '../base/assert.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { ClusterLines } from '../protocol/cluster-log-messages.js'
import { Heartbeat } from '../protocol/heartbeat.js'
import { decodeOutcomes, encodeCommands, type CommandFrame, type OutcomeFrame } from '../protocol/frame.js'
import type { Command, Outcome, ShardSettings, ShardWorkerData, StreamEvent } from '../protocol/messages.js'
import { noFigures, type ShardFigures } from '../protocol/shard-figures.js'
import type { Notice } from '../protocol/notices.js'
import { ThreadWatch, type Verdict } from './thread-watch.js'

/** Makes the lines of a shard to the log of its cluster. */
export type LinesOf = (shard: number) => ClusterLines

/** Takes the outcome of one command. */
export type Receive = (outcome: Outcome) => void

/** What a shard sends besides outcomes. */
export interface ShardListener {
  events(events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(notice: Notice): void
  /**
   * A message of the thread cannot be read. It may have said that a record was erased or a key removed, so this process
   * must not go on without it.
   */
  unreadable(error: unknown): void
  /** The thread ended unexpectedly. */
  died(error: Error): void
}

/** A command in flight. */
interface Pending {
  receive: Receive
  bytes: number
  writes: boolean
}

/**
 * The front thread's end of one shard worker: sends its commands, one frame for each tick, and passes on its outcomes.
 */
export class ShardPort {
  readonly #settings: ShardSettings
  readonly #linesOf: LinesOf | undefined
  readonly #listener: ShardListener
  readonly #pending = new Map<number, Pending>()
  #worker: Worker | undefined
  /** Settles when the current start, or the last one, has ended. */
  #starting: Promise<void> = Promise.resolve()
  /** Resolves when the last thread has ended. */
  #ended: Promise<void> = Promise.resolve()
  /** Watches the thread from its start to its end. */
  #watch: ThreadWatch | undefined
  #frame: CommandFrame = []
  #bytes = 0
  #nextId = 0
  #closing = false
  /** A message of the thread could not be read: nothing is sent or received any more. */
  #isUnreadable = false
  figures: ShardFigures = noFigures()

  /** @param linesOf makes the lines to the log of a cluster, for each thread anew; absent where there is none */
  constructor(settings: ShardSettings, listener: ShardListener, linesOf?: LinesOf) {
    this.#linesOf = linesOf
    this.#settings = settings
    this.#listener = listener
  }

  /** Commands that wait for their outcome. */
  get depth(): number {
    return this.#pending.size
  }

  get serving(): boolean {
    return this.#worker !== undefined && !this.#isUnreadable
  }

  /** Milliseconds without progress of the thread while commands wait for it. */
  get silentMs(): number {
    return this.#watch?.silentMs ?? 0
  }

  /** Starts the thread; returns when its store is open. @throws Error when it cannot be opened */
  start(): Promise<void> {
    const starting = this.#start()
    this.#starting = starting.catch(() => undefined)
    return starting
  }

  async #start(): Promise<void> {
    const heartbeat = new Heartbeat()
    const lines = this.#linesOf?.(this.#settings.shard)
    const workerData: ShardWorkerData = {
      settings: this.#settings,
      heartbeat: heartbeat.memory,
      ...(lines !== undefined && { lines }),
    }
    const worker = new Worker(new URL('../../workers/shard-thread.js', import.meta.url), {
      workerData,
      name: `shard-${this.#settings.shard}`,
      ...(lines !== undefined && { transferList: [lines.log.port, lines.checkpoints.port] }),
    })
    const watch = new ThreadWatch(worker, heartbeat)
    this.#watch = watch
    this.#ended = new Promise((resolve) => worker.once('exit', () => resolve()))
    worker.once('exit', () => (this.#watch = undefined))
    // One listener for the first message and for all others: Node stops delivering when the last listener is removed.
    await new Promise<void>((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (message instanceof ArrayBuffer) this.#receive(message)
        else resolve()
      })
      worker.once('error', reject)
      worker.once('exit', (code) => reject(new Error(`The thread ended with ${code} before it was ready`)))
    })
    let failure: Error | undefined
    worker.on('error', (error) => (failure = error))
    // `exit` comes after the last frame of the thread, `error` may come before: committed writes are still answered.
    worker.on('exit', (code) => {
      const how = watch.ending ? 'hung and was ended' : `ended with ${code}`
      this.#end(worker, failure ?? new Error(`The thread of shard ${this.#settings.shard} ${how}`))
    })
    this.#worker = worker
    watch.opened()
    // A new thread counts from 0.
    this.figures = { ...noFigures(), agents: this.figures.agents }
  }

  /**
   * Sends a command with the others of this tick.
   * @returns a refusal, and nothing is sent, when the shard's queue is full or it is not serving
   */
  send(command: Command, receive: Receive): Refusal | undefined {
    if (!this.serving) {
      return refuse('unavailable', 'The shard of this agent is restarting, try again', { retryAfterSecs: 1 })
    }
    if (this.#pending.size >= limits.shardQueueMax || this.#bytes > limits.shardQueueBytesMax) {
      return refuse('overloaded', 'Too many requests wait for the shard of this agent, try again', {
        retryAfterSecs: 1,
      })
    }
    if (this.#frame.length === 0) setImmediate(() => this.#flush())
    const id = this.#nextId
    this.#nextId = (id + 1) % Number.MAX_SAFE_INTEGER
    const bytes = bytesOf(command)
    this.#bytes += bytes
    this.#pending.set(id, { receive, bytes, writes: 'options' in command })
    this.#frame.push([id, command])
    return undefined
  }

  /** Checks the thread. One that hangs is ended; callers and listener are told in the same way as when it dies. */
  look(nowMs: number, silenceMaxMs: number): Verdict {
    // Closing a store may take long, and has the time limit of the stop.
    const waiting = this.#pending.size > 0
    return this.#watch?.look(nowMs, { waiting, silenceMaxMs }) ?? 'well'
  }

  /** Ends the thread whatever it is doing; resolves when it has ended. */
  async abandon(): Promise<void> {
    this.#closing = true
    await this.#watch?.end()
  }

  /** Lets commands in flight finish, closes the store and ends the thread, which may still be starting. */
  async close(): Promise<void> {
    this.#closing = true
    await this.#starting
    this.#flush()
    this.#worker?.postMessage('close')
    await this.#ended
  }

  /** Sends all commands of this tick in one message: a message costs the same whatever it contains. */
  #flush(): void {
    if (this.#frame.length === 0 || this.#worker === undefined) return
    const memory = encodeCommands(this.#frame)
    this.#frame = []
    this.#worker.postMessage(memory, [memory])
  }

  #receive(memory: ArrayBuffer): void {
    if (this.#isUnreadable) return
    let frame: OutcomeFrame
    try {
      frame = decodeOutcomes(memory)
      assert(
        frame.outcomes.every(([id]) => this.#pending.has(id)),
        'an outcome belongs to a command that is under way',
      )
    } catch (error) {
      this.#isUnreadable = true
      this.#listener.unreadable(error)
      this.#tellLost()
      return
    }
    this.#take(frame)
  }

  #take({ outcomes, events, figures, notices }: OutcomeFrame): void {
    for (const notice of notices) this.#guard(() => this.#listener.notice(notice))
    this.figures = figures
    for (const [id, outcome] of outcomes) {
      const pending = this.#pending.get(id)
      if (pending === undefined) continue
      this.#pending.delete(id)
      this.#bytes -= pending.bytes
      this.#guard(() => pending.receive(outcome))
    }
    if (events.length > 0) this.#guard(() => this.#listener.events(events))
  }

  /** An error in one caller's callback does not end the process, nor keep others from being called. */
  #guard(tell: () => void): void {
    try {
      tell()
    } catch (error) {
      const failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
      this.#listener.notice({ kind: 'failed', failures: [failure] })
    }
  }

  #end(worker: Worker, error: Error): void {
    assert(this.#worker === worker, 'a thread has no successor before it has ended')
    this.#worker = undefined
    this.#tellLost()
    if (!this.#closing) this.#listener.died(error)
  }

  /** Writes in flight may or may not be on disk, which is what their callers are told. */
  #tellLost(): void {
    this.#frame = []
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    this.#bytes = 0
    for (const { receive, writes } of pending) {
      this.#guard(() => receive(lost(writes)))
    }
  }
}

function lost(writes: boolean): Refusal {
  return writes
    ? refuse(
        'outcome_unknown',
        'The shard did not answer; read the strand to see whether the write is there',
        {
          retryAfterSecs: 1,
        },
      )
    : refuse('unavailable', 'The shard of this agent is restarting, try again', { retryAfterSecs: 1 })
}

function bytesOf(command: Command): number {
  if ('body' in command) return command.body.length
  if (command.kind === 'strandImport') return command.chunk.length
  return 'chunk' in command ? command.chunk.length : 64
}
