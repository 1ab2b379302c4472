import { assert } from '../../base/assert.js'
import { steadyClock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { decodeOutcomes, encodeCommands, type CommandFrame, type FrontFrame } from '../../protocol/frame.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Command, Outcome, StreamEvent } from '../../protocol/messages.js'
import type { Notice } from '../../protocol/notices.js'
import { HeldCommands } from './held-commands.js'
import type { ShardConnection } from './shard-connection.js'

/**
 * Takes the outcome of one command.
 * @param proven it holds whatever has become of the node's lease: a group was appended with it, or it says that nothing is known
 * @param isLate the shard may have told of changes that it does not show yet
 */
export type Receive = (outcome: Outcome, proven: boolean, isLate?: boolean) => void

/** A write in flight may or may not be on disk. */
export const outcomeUnknown = refuse(
  'outcome_unknown',
  'The shard did not answer; read the strand to see whether the write is there',
  { retryAfterSecs: 1 },
)

/** Asks a shard. */
export type Ask = (command: Command) => Promise<Outcome>

/** What a link tells its front of, besides outcomes. */
export interface LinkListener {
  events(events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(notice: Notice): void
  /**
   * The thread is new. Asks it for what the notices of its predecessor may not have said; no client is answered before
   * every front has.
   */
  learn(ask: Ask): Promise<void>
  /** The new thread serves the front. It does not watch any agents yet. */
  restarted(): void
  /** The thread has ended, and what it had told is passed on. */
  ended(): void
  /**
   * A message of the thread cannot be read. It may have said that a record was erased or a key removed, so this process
   * must not go on without it.
   */
  unreadable(error: unknown): void
}

/** A command in flight. */
interface Pending {
  receive: Receive
  bytes: number
  writes: boolean
}

/** Whether no thread is attached, or a new one whose predecessor may have told more than the front knows, or one that serves. */
type Phase = 'away' | 'learning' | 'serving'

/**
 * A front's end of one shard, whichever thread serves it: sends its commands, one frame for each tick, and passes on its
 * outcomes, once every front has processed the notices that came with them or before them (docs/adr/0045-fronts.md).
 */
export class ShardLink {
  readonly #listener: LinkListener
  /** Commands that wait for a thread; absent where they are refused instead. */
  readonly #held: HeldCommands<Receive> | undefined
  readonly #pending = new Map<number, Pending>()
  /** The thread that is attached, or was last. */
  #thread: ShardConnection | undefined
  /** The one that came last, which may not be attached yet. */
  #next: ShardConnection | undefined
  #phase: Phase = 'away'
  #awaySinceMs = -Infinity
  /** Resolves when what the last thread had told is passed on. */
  #ended: Promise<void> = Promise.resolve()
  #passedOn: () => void = () => {}
  #frame: CommandFrame = []
  #frameBytes = 0
  /** Commands so far. */
  #count = 0
  /** What waits until all fronts have processed the notices of the first: frames, and what to do at the thread's end. */
  #untaken: (FrontFrame | (() => void))[] = []
  /** The notices of the first frame that is held are processed. */
  #noticed = false
  /** The last frame with notices that was processed. */
  #told = 0
  /** A message of the thread could not be read: nothing is sent or received any more. */
  #isUnreadable = false

  /** @param waits whether commands wait for a while where there is no thread, as another node may have one soon */
  constructor(listener: LinkListener, waits: boolean) {
    this.#listener = listener
    this.#held = waits ? new HeldCommands() : undefined
  }

  get serving(): boolean {
    return this.#phase === 'serving' && this.#thread?.isLeaving !== true && !this.#isUnreadable
  }

  /** Since when it has not served, by the steady clock. */
  get awaySinceMs(): number {
    return this.#awaySinceMs
  }

  /** Resolves when what the last thread had told is passed on. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Of the thread that is attached, or was last: what that has answered is passed on yet. */
  get lease(): LeaseMemory | undefined {
    return this.#thread?.lease
  }

  /** Commands of all fronts that wait for their outcome. */
  get depth(): number {
    return (this.#thread?.memory.depth ?? 0) + this.#frame.length
  }

  /** Whether a thread is attached. */
  isAt(thread: ShardConnection): boolean {
    return this.#phase !== 'away' && this.#thread === thread
  }

  /**
   * Attaches a thread of the shard once what the last one told is passed on, and has it serve the front once that has
   * learnt what the last one may not have told.
   * @param failed called where the thread is there, but did not say what the front must know
   * @returns whether it serves: not where it is older than one that was attached, or ends in the meantime
   */
  async join(thread: ShardConnection, failed: (reason: string) => void): Promise<boolean> {
    if (!(await this.#attach(thread))) return false
    try {
      await this.#listener.learn((command) => this.#learn(command))
    } catch (error) {
      if (this.isAt(thread)) failed(`what it told is not known (${String(error)})`)
      return false
    }
    return this.#serve(thread)
  }

  /** The thread that came last is about to end: what was sent is answered yet, and nothing more is sent. */
  leaving(thread = this.#next): void {
    if (thread === undefined || thread.isLeaving === true) return
    if (this.isAt(thread)) {
      this.#noteAway()
      this.flush()
    }
    thread.isLeaving = true
  }

  /**
   * Sends a command with the others of this tick, or has it wait until the shard serves.
   * @returns a refusal, and nothing is sent, when the shard's queue is full, or it is not serving and commands do not wait for it
   */
  send(command: Command, receive: Receive): Refusal | undefined {
    if (!this.serving) {
      const waits = this.#isUnreadable ? undefined : this.#held
      return waits === undefined ? lost(false) : waits.add({ command, receive, bytes: bytesOf(command) })
    }
    const bytesWait = (this.#thread?.memory.bytes ?? 0) + this.#frameBytes
    if (this.depth >= limits.shardQueueMax || bytesWait > limits.shardQueueBytesMax) {
      return refuse('overloaded', 'Too many requests wait for the shard of this agent, try again', {
        retryAfterSecs: 1,
      })
    }
    this.#add(command, receive)
    return undefined
  }

  /** Sends all commands of this tick in one message: a message costs the same whatever it contains. */
  flush(): void {
    if (this.#frame.length === 0 || this.#thread === undefined) return
    this.#thread.memory.count(this.#frame.length, this.#frameBytes)
    const memory = encodeCommands(this.#frame)
    this.#frame = []
    this.#frameBytes = 0
    this.#thread.post(memory)
  }

  /** Takes a frame of a thread, and keeps it until that is attached. */
  receive(thread: ShardConnection, frame: ArrayBuffer): void {
    if (thread.isOver === true) return
    if (this.isAt(thread)) this.#take(frame)
    else (thread.early ??= []).push(frame)
  }

  /** A thread has ended. What it has told is passed on. */
  end(thread: ShardConnection): void {
    if (thread.isOver === true) return
    thread.isOver = true
    if (this.isAt(thread)) this.#end(thread)
  }

  /** No message says any more how far other fronts have processed what a thread told: what waits for that is lost. */
  abandon(thread: ShardConnection): void {
    this.end(thread)
    if (this.#thread !== thread) return
    thread.close?.()
    if (this.#untaken.length === 0) return
    this.#untaken = this.#untaken.filter((one) => typeof one === 'function')
    this.#noticed = false
    this.#goOn()
  }

  /** The front ends: the others wait for it no more. */
  leave(): void {
    this.#thread?.memory.leaves(this.#thread.front)
    this.#thread?.close?.()
  }

  async #attach(thread: ShardConnection): Promise<boolean> {
    if (thread.term < (this.#next?.term ?? -1)) return drop(thread)
    this.#next = thread
    // One that has not ended by itself is of a node that is gone, and does not know.
    if (this.#phase !== 'away' && this.#thread !== undefined) this.abandon(this.#thread)
    await this.#ended
    if (this.#next !== thread) return drop(thread)
    this.#thread = thread
    this.#phase = 'learning'
    this.#told = 0
    this.#ended = new Promise((resolve) => (this.#passedOn = resolve))
    thread.memory.learns(thread.front)
    for (const frame of thread.early?.splice(0) ?? []) this.#take(frame)
    if (thread.isOver === true) this.#end(thread)
    return this.isAt(thread)
  }

  /** The front knows what it must know. @returns whether the thread serves it */
  #serve(thread: ShardConnection): boolean {
    if (!this.isAt(thread) || thread.isLeaving === true) return false
    this.#phase = 'serving'
    thread.memory.serves(thread.front, this.#told)
    for (const { command, receive } of this.#held?.takeAll() ?? []) {
      const refusal = this.send(command, receive)
      if (refusal !== undefined) receive(refusal, true)
    }
    if (!this.serving) return false
    this.#listener.restarted()
    return true
  }

  /** The outcome of a command by which the front learns what it must know before the thread serves. */
  #learn(command: Command): Promise<Outcome> {
    return new Promise((resolve) => {
      if (this.#phase === 'away') resolve(lost(false))
      else this.#add(command, resolve)
    })
  }

  #take(memory: ArrayBuffer): void {
    if (this.#isUnreadable) return
    try {
      this.#untaken.push(this.#read(memory))
    } catch (error) {
      this.#isUnreadable = true
      this.#listener.unreadable(error)
      this.#tellLost()
      return
    }
    if (this.#untaken.length === 1) this.#goOn()
  }

  #end(thread: ShardConnection): void {
    this.#noteAway()
    this.#phase = 'away'
    this.#untaken.push(() => {
      this.#tellLost()
      thread.memory.leaves(thread.front)
      this.#listener.ended()
      this.#passedOn()
    })
    if (this.#untaken.length === 1) this.#goOn()
  }

  #noteAway(): void {
    if (this.serving) this.#awaySinceMs = steadyClock()
  }

  #add(command: Command, receive: Receive): void {
    if (this.#frame.length === 0) setImmediate(() => this.flush())
    assert(this.#thread !== undefined, 'a command is for a thread that is there')
    const { front } = this.#thread
    const id = this.#count++ * limits.frontNumbers + front
    const bytes = bytesOf(command)
    this.#frameBytes += bytes
    this.#pending.set(id, { receive, bytes, writes: 'options' in command })
    this.#frame.push([id, command.kind === 'watch' ? { ...command, front } : command])
  }

  /** @throws Error when it is no frame, or answers what was not asked */
  #read(memory: ArrayBuffer): FrontFrame {
    const frame = decodeOutcomes(memory)
    assert(
      frame.outcomes.every(([id]) => this.#pending.has(id)),
      'an outcome belongs to a command that is under way',
    )
    return frame
  }

  /** Passes on what is held, as far as all fronts are. */
  #goOn(): void {
    for (let first = this.#untaken[0]; first !== undefined; first = this.#untaken[0]) {
      if (typeof first === 'function') first()
      else if (this.#mayPass(first)) this.#pass(first)
      else return
      this.#untaken.shift()
      this.#noticed = false
    }
  }

  /** Processes the notices of a frame. @returns whether all fronts have; if not, it goes on once they have */
  #mayPass({ notices, told, isLate }: FrontFrame): boolean {
    assert(this.#thread !== undefined, 'a frame is of a thread that is there')
    const { memory, front } = this.#thread
    if (!this.#noticed) {
      for (const notice of notices) this.#guard(() => this.#listener.notice(notice))
      // Without notices too: the first frame of a front says only that it need not process what was told before.
      if (isLate !== true) {
        if (told !== this.#told) memory.hasTaken(front, told)
        this.#told = told
      }
      this.#noticed = true
    }
    // What a front learns before it serves is answered to nobody yet.
    if (this.#phase === 'learning' || memory.haveTaken(told)) return true
    void memory.untilTaken(told).then(() => this.#goOn())
    return false
  }

  #pass({ outcomes, events, appended, told, isLate }: FrontFrame): void {
    const isOvertaken = isLate === true && told !== this.#told
    let bytes = 0
    const receivers = outcomes.map(([id]) => {
      const pending = this.#pending.get(id)
      this.#pending.delete(id)
      bytes += pending?.bytes ?? 0
      return pending?.receive
    })
    this.#thread?.memory.count(-outcomes.length, -bytes)
    for (const [at, [, outcome]] of outcomes.entries())
      this.#guard(() => receivers[at]?.(outcome, appended, isOvertaken))
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

  #tellLost(): void {
    this.#frame = []
    this.#frameBytes = 0
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { receive, writes } of pending) {
      this.#guard(() => receive(lost(writes), true))
    }
  }
}

function lost(writes: boolean): Refusal {
  return writes
    ? outcomeUnknown
    : refuse('unavailable', 'The shard of this agent is restarting, try again', { retryAfterSecs: 1 })
}

function bytesOf(command: Command): number {
  if ('body' in command) return command.body.length
  if (command.kind === 'strandImport') return command.chunk.length
  return 'chunk' in command ? command.chunk.length : 64
}

/** A thread that is never attached: the others do not wait for the front there. */
function drop(thread: ShardConnection): false {
  thread.memory.leaves(thread.front)
  thread.isOver = true
  thread.close?.()
  return false
}
