import { assert } from '../../base/assert.js'
import { steadyClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { decodeOutcomes, encodeCommands, type CommandFrame, type FrontFrame } from '../../protocol/frame.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Command, Outcome } from '../../protocol/messages.js'
import type { StreamEvent } from '../../protocol/stream-messages.js'
import type { Notice } from '../../protocol/notices.js'
import { HeldCommands, refusalIfFull } from './held-commands.js'
import type { ShardConnection } from './shard-connection.js'

/**
 * Receives the outcome of one command.
 * @param proven the outcome is valid even if the lease has ended: a group was appended with it, or it says
 * that the result is unknown
 * @param isLate the shard may have published changes that the outcome does not include
 */
export type Receive = (outcome: Outcome, proven: boolean, isLate?: boolean) => void

/** For a write in flight, which may or may not be on disk. */
export const outcomeUnknown = refuse(
  'outcome_unknown',
  'The shard did not answer; read the strand to see whether the write is there',
  { retryAfterSecs: 1 },
)

/** Sends a command to a shard and resolves to its outcome. */
export type RequestShard = (command: Command) => Promise<Outcome>

/** Receives everything from a link except outcomes. */
export interface LinkListener {
  events(events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(notice: Notice): void
  /**
   * The thread is new. Requests the state that lost notices of its predecessor may have changed; no client
   * gets an answer until every front has done so.
   */
  catchUp(request: RequestShard): Promise<void>
  /** The new thread serves the front. It has no watched agents yet. */
  restarted(): void
  /** The thread has ended, and its last frames were delivered. */
  ended(): void
}

interface Pending {
  receive: Receive
  bytes: number
  writes: boolean
}

/** Whether no thread is attached, the front catches up with a new thread, or the thread serves. */
type Phase = 'away' | 'catchingUp' | 'serving'

/**
 * A front's link to one shard across its threads. Sends one frame of commands per tick, and delivers outcomes
 * once every front has processed the notices up to them (docs/adr/0045-fronts.md).
 */
export class ShardLink {
  readonly #listener: LinkListener
  /** Commands that wait for a thread; absent if commands are refused instead. */
  readonly #held: HeldCommands<Receive> | undefined
  readonly #pending = new Map<number, Pending>()
  /** The attached thread, or the last one. */
  #thread: ShardConnection | undefined
  /** The newest thread, which may not be attached yet. */
  #next: ShardConnection | undefined
  #phase: Phase = 'away'
  #awaySinceMs = -Infinity
  /** Resolves when the frames of the last thread were delivered. */
  #ended: Promise<void> = Promise.resolve()
  #resolveEnded: () => void = () => {}
  #frame: CommandFrame = []
  #frameBytes = 0
  /** The number of commands so far. */
  #count = 0
  /**
   * Frames, and end-of-thread actions, that wait until all fronts have processed the first frame's notices.
   */
  #waiting: (FrontFrame | (() => void))[] = []
  /** Whether this front has processed the notices of the first waiting frame. */
  #isProcessed = false
  /** The number of the last frame with notices that this front has processed. */
  #noticeNo = 0
  /** After an unreadable message of the thread, nothing is sent or received until it has ended. */
  #isUnreadable = false
  /** The attached thread cannot be used. */
  #failed: (reason: string) => void = () => {}

  /**
   * @param waits whether commands wait for a limited time without a thread, as another node may soon have one
   */
  constructor(listener: LinkListener, waits: boolean) {
    this.#listener = listener
    this.#held = waits ? new HeldCommands() : undefined
  }

  get serving(): boolean {
    return this.#phase === 'serving' && this.#thread?.isLeaving !== true && !this.#isUnreadable
  }

  /** When the shard stopped serving, by the steady clock. */
  get awaySinceMs(): number {
    return this.#awaySinceMs
  }

  /** Resolves when the frames of the last thread were delivered. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** The lease of the attached or last thread, whose answers may still be delivered. */
  get lease(): LeaseMemory | undefined {
    return this.#thread?.lease
  }

  /** As the connection says; undefined in this process. */
  get isReadOnly(): boolean | undefined {
    return this.#thread?.isReadOnly
  }

  /** Pending commands of all fronts. */
  get depth(): number {
    return (this.#thread?.memory.depth ?? 0) + this.#frame.length
  }

  isAt(thread: ShardConnection): boolean {
    return this.#phase !== 'away' && this.#thread === thread
  }

  /**
   * Attaches a thread once the frames of the last one were delivered. The thread serves once the front has
   * caught up.
   * @param failed called when the front cannot catch up although the thread is there, or cannot read a
   *   message, perhaps one about an erased record or removed key: the thread must not be used any more
   * @returns whether it serves; false if a newer thread was attached or the thread ended
   */
  async join(thread: ShardConnection, failed: (reason: string) => void): Promise<boolean> {
    if (!(await this.#attach(thread, failed))) return false
    try {
      await this.#listener.catchUp((command) => this.#sendCatchUp(command))
    } catch (error) {
      if (this.isAt(thread)) failed(`the front could not catch up with its thread (${String(error)})`)
      return false
    }
    return this.#serve(thread)
  }

  /** The newest thread is about to end: sent commands are still answered, and no more are sent. */
  leaving(thread = this.#next): void {
    if (thread === undefined || thread.isLeaving === true) return
    if (this.isAt(thread)) {
      this.#recordAway()
      this.flush()
    }
    thread.isLeaving = true
  }

  /**
   * Sends a command in the frame of this tick, or queues it until the shard serves.
   * @returns a refusal, without sending, when the queue is full, or the shard does not serve and commands are
   * not queued
   */
  send(command: Command, receive: Receive): Refusal | undefined {
    if (!this.serving) {
      const waits = this.#isUnreadable ? undefined : this.#held
      return waits === undefined ? lost(false) : waits.add({ command, receive, bytes: bytesOf(command) })
    }
    const bytes = (this.#thread?.memory.bytes ?? 0) + this.#frameBytes
    const refusal = refusalIfFull(command, { count: this.depth, bytes })
    if (refusal === undefined) this.#add(command, receive)
    return refusal
  }

  /** Sends all commands of this tick in one message, because each message has a fixed cost. */
  flush(): void {
    if (this.#frame.length === 0 || this.#thread === undefined) return
    this.#thread.memory.count(this.#frame.length, this.#frameBytes)
    const memory = encodeCommands(this.#frame)
    this.#frame = []
    this.#frameBytes = 0
    this.#thread.post(memory)
  }

  /** Receives a frame of a thread. Frames of a thread that is not attached yet are stored. */
  receive(thread: ShardConnection, frame: ArrayBuffer): void {
    if (thread.isOver === true) return
    if (this.isAt(thread)) this.#take(frame)
    else (thread.early ??= []).push(frame)
  }

  /** A thread has ended. Its frames are still delivered. */
  end(thread: ShardConnection): void {
    if (thread.isOver === true) return
    thread.isOver = true
    if (this.isAt(thread)) this.#end(thread)
  }

  /**
   * Drops the waiting frames of a thread, because no message will report the progress of the other fronts.
   */
  abandon(thread: ShardConnection): void {
    this.end(thread)
    if (this.#thread !== thread) return
    thread.close?.()
    if (this.#waiting.length === 0) return
    this.#waiting = this.#waiting.filter((one) => typeof one === 'function')
    this.#isProcessed = false
    this.#drain()
  }

  /** The front ends: other fronts no longer wait for it. */
  leave(): void {
    this.#thread?.memory.remove(this.#thread.front)
    this.#thread?.close?.()
  }

  async #attach(thread: ShardConnection, failed: (reason: string) => void): Promise<boolean> {
    if (thread.term < (this.#next?.term ?? -1)) return drop(thread)
    this.#next = thread
    // A thread without an end message belongs to a failed node.
    if (this.#phase !== 'away' && this.#thread !== undefined) this.abandon(this.#thread)
    await this.#ended
    if (this.#next !== thread) return drop(thread)
    this.#thread = thread
    this.#failed = failed
    this.#phase = 'catchingUp'
    this.#noticeNo = 0
    this.#ended = new Promise((resolve) => (this.#resolveEnded = resolve))
    thread.memory.startCatchUp(thread.front)
    for (const frame of thread.early?.splice(0) ?? []) if (this.isAt(thread)) this.#take(frame)
    if (thread.isOver === true && this.isAt(thread)) this.#end(thread)
    return this.isAt(thread)
  }

  /** The front has caught up. @returns whether the thread serves it */
  #serve(thread: ShardConnection): boolean {
    if (!this.isAt(thread) || thread.isLeaving === true) return false
    this.#phase = 'serving'
    thread.memory.startServing(thread.front, this.#noticeNo)
    for (const { command, receive } of this.#held?.takeAll() ?? []) {
      const refusal = this.send(command, receive)
      if (refusal !== undefined) receive(refusal, true)
    }
    if (this.serving) this.#listener.restarted()
    return this.serving
  }

  /** Sends a command of the catch-up, before the thread serves. */
  #sendCatchUp(command: Command): Promise<Outcome> {
    return new Promise((resolve) => {
      if (this.#phase === 'away') resolve(lost(false))
      else this.#add(command, resolve)
    })
  }

  #take(memory: ArrayBuffer): void {
    if (this.#isUnreadable) return
    try {
      this.#waiting.push(this.#read(memory))
    } catch (error) {
      this.#recordAway()
      this.#isUnreadable = true
      this.#failed(`a message of its thread is unreadable (${String(error)})`)
      this.#failPending()
      return
    }
    if (this.#waiting.length === 1) this.#drain()
  }

  #end(thread: ShardConnection): void {
    this.#recordAway()
    this.#phase = 'away'
    this.#isUnreadable = false
    this.#waiting.push(() => {
      this.#failPending()
      thread.memory.remove(thread.front)
      this.#listener.ended()
      this.#resolveEnded()
    })
    if (this.#waiting.length === 1) this.#drain()
  }

  #recordAway(): void {
    if (this.serving) this.#awaySinceMs = steadyClock()
  }

  #add(command: Command, receive: Receive): void {
    if (this.#frame.length === 0) setImmediate(() => this.flush())
    assert(this.#thread !== undefined, 'a command is sent to an attached thread')
    const { front } = this.#thread
    const id = this.#count++ * limits.frontNumbers + front
    const bytes = bytesOf(command)
    this.#frameBytes += bytes
    this.#pending.set(id, { receive, bytes, writes: 'options' in command })
    this.#frame.push([id, command.kind === 'watch' ? { ...command, front } : command])
  }

  /** @throws Error when the frame is malformed or answers an unknown command */
  #read(memory: ArrayBuffer): FrontFrame {
    const frame = decodeOutcomes(memory)
    assert(
      frame.outcomes.every(([id]) => this.#pending.has(id)),
      'an outcome belongs to a pending command',
    )
    return frame
  }

  /** Delivers waiting frames up to the first whose notices another front has not processed. */
  #drain(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (typeof first === 'function') first()
      else if (this.#processNotices(first)) this.#deliver(first)
      else return
      this.#waiting.shift()
      this.#isProcessed = false
    }
  }

  /**
   * Processes the notices of a frame.
   * @returns whether all fronts have; if not, `#drain` runs again once they have
   */
  #processNotices({ notices, noticeNo, isLate }: FrontFrame): boolean {
    assert(this.#thread !== undefined, 'a frame comes from an attached thread')
    const { memory, front } = this.#thread
    if (!this.#isProcessed) {
      for (const notice of notices) this.#callSafely(() => this.#listener.notice(notice))
      // Also without notices: the first frame of a front only says that earlier notices need no processing.
      if (isLate !== true) {
        if (noticeNo !== this.#noticeNo) memory.acknowledge(front, noticeNo)
        this.#noticeNo = noticeNo
      }
      this.#isProcessed = true
    }
    // No client gets an answer from the catch-up.
    if (this.#phase === 'catchingUp' || memory.isAcknowledged(noticeNo)) return true
    void memory.untilAcknowledged(noticeNo).then(() => this.#drain())
    return false
  }

  #deliver({ outcomes, events, appended, noticeNo, isLate }: FrontFrame): void {
    const isOvertaken = isLate === true && noticeNo !== this.#noticeNo
    let bytes = 0
    const receivers = outcomes.map(([id]) => {
      const pending = this.#pending.get(id)
      this.#pending.delete(id)
      if (pending === undefined) return undefined
      bytes += pending.bytes
      const { receive } = pending
      // V8 may keep a deleted entry of a map until a full collection, and with it the whole request.
      pending.receive = doNothing
      return receive
    })
    this.#thread?.memory.count(-outcomes.length, -bytes)
    for (const [at, [, outcome]] of outcomes.entries())
      this.#callSafely(() => receivers[at]?.(outcome, appended, isOvertaken))
    if (events.length > 0) this.#callSafely(() => this.#listener.events(events))
  }

  /** An error in one callback must not end the process or skip the other callbacks. */
  #callSafely(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      const failure = error instanceof Error ? (error.stack ?? error.message) : String(error)
      this.#listener.notice({ kind: 'failed', failures: [failure] })
    }
  }

  #failPending(): void {
    this.#frame = []
    this.#frameBytes = 0
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { receive, writes } of pending) this.#callSafely(() => receive(lost(writes), true))
  }
}

const doNothing = () => {}

function lost(writes: boolean): Refusal {
  return writes
    ? outcomeUnknown
    : refuse('unavailable', 'The shard of this agent is restarting, try again', { retryAfterSecs: 1 })
}

function bytesOf(command: Command): number {
  if ('body' in command) return command.body.length
  return 'chunk' in command ? command.chunk.length : 64
}

/** Discards a thread that is never attached: other fronts do not wait for this one there. */
function drop(thread: ShardConnection): false {
  thread.memory.remove(thread.front)
  thread.isOver = true
  thread.close?.()
  return false
}
