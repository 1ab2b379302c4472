import { assert } from '../../base/assert.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { decodeOutcomes, encodeCommands, type CommandFrame, type FrontFrame } from '../../protocol/frame.js'
import type { Command, Outcome, StreamEvent } from '../../protocol/messages.js'
import type { Notice } from '../../protocol/notices.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'
import { HeldCommands } from './held-commands.js'

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

/** What a shard sends besides outcomes. */
export interface LinkListener {
  events(events: StreamEvent[]): void
  /** Called before the outcomes and events of the same commit. */
  notice(notice: Notice): void
  /**
   * A message of the thread cannot be read. It may have said that a record was erased or a key removed, so this process
   * must not go on without it.
   */
  unreadable(error: unknown): void
}

/** A thread of a shard: its port, and the memory that it shares with the fronts. */
export interface ShardEnd {
  /** The number that the front has there. */
  front: number
  post(frame: ArrayBuffer): void
  memory: ShardMemory
}

/** A command in flight. */
interface Pending {
  receive: Receive
  bytes: number
  writes: boolean
}

/** Whether the thread has ended, or is new and the front does not know yet what its predecessor has told, or serves. */
type Phase = 'away' | 'learning' | 'serving'

/**
 * A front's end of one shard: sends its commands, one frame for each tick, and passes on its outcomes, once every front
 * has processed the notices that came with them or before them (docs/adr/0045-fronts.md).
 */
export class ShardLink {
  readonly #listener: LinkListener
  /** Commands that wait for a thread; absent where they are refused instead. */
  readonly #held: HeldCommands<Receive> | undefined
  readonly #pending = new Map<number, Pending>()
  #end: ShardEnd | undefined
  #phase: Phase = 'away'
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
  /** The thread is about to end, because another node is to have the shard: nothing more is sent to it. */
  #isLeaving = false
  /** A message of the thread could not be read: nothing is sent or received any more. */
  #isUnreadable = false

  /** @param waits whether commands wait for a while where there is no thread, as another node may have one soon */
  constructor(listener: LinkListener, waits = false) {
    this.#listener = listener
    this.#held = waits ? new HeldCommands() : undefined
  }

  get serving(): boolean {
    return this.#phase === 'serving' && !this.#isLeaving && !this.#isUnreadable
  }

  /** Commands of all fronts that wait for their outcome. */
  get depth(): number {
    return (this.#end?.memory.depth ?? 0) + this.#frame.length
  }

  /** A thread is there: what the front must know of its predecessor's commits is to be learnt, then it serves. */
  begin(end: ShardEnd): void {
    assert(this.#phase === 'away', 'a thread has no successor before it has ended')
    this.#end = end
    this.#phase = 'learning'
    this.#isLeaving = false
    this.#told = 0
    end.memory.learns(end.front)
  }

  /** The front has learnt it. */
  serve(): void {
    if (this.#phase !== 'learning' || this.#isLeaving) return
    this.#phase = 'serving'
    this.#end?.memory.serves(this.#end.front, this.#told)
    for (const { command, receive } of this.#held?.takeAll() ?? []) {
      const refusal = this.send(command, receive)
      if (refusal !== undefined) receive(refusal, true)
    }
  }

  /** The thread is about to end. What was sent is answered yet; nothing more is sent to it. */
  leaving(): void {
    this.flush()
    this.#isLeaving = true
  }

  /**
   * Sends a command with the others of this tick, or has it wait until the shard serves.
   * @returns a refusal, and nothing is sent, when the shard's queue is full, or it is not serving and nobody waits for it
   */
  send(command: Command, receive: Receive): Refusal | undefined {
    if (!this.serving) {
      const waits = this.#isUnreadable ? undefined : this.#held
      return waits === undefined ? lost(false) : waits.add({ command, receive, bytes: bytesOf(command) })
    }
    const bytesWait = (this.#end?.memory.bytes ?? 0) + this.#frameBytes
    if (this.depth >= limits.shardQueueMax || bytesWait > limits.shardQueueBytesMax) {
      return refuse('overloaded', 'Too many requests wait for the shard of this agent, try again', {
        retryAfterSecs: 1,
      })
    }
    this.#add(command, receive)
    return undefined
  }

  /** The outcome of a command by which the front learns what it must know before the thread serves. */
  learn(command: Command): Promise<Outcome> {
    return new Promise((resolve) => {
      if (this.#phase === 'away') resolve(lost(false))
      else this.#add(command, resolve)
    })
  }

  /** Sends all commands of this tick in one message: a message costs the same whatever it contains. */
  flush(): void {
    if (this.#frame.length === 0 || this.#end === undefined) return
    this.#end.memory.count(this.#frame.length, this.#frameBytes)
    const memory = encodeCommands(this.#frame)
    this.#frame = []
    this.#frameBytes = 0
    this.#end.post(memory)
  }

  /** Takes a message of the thread. */
  receive(memory: ArrayBuffer): void {
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

  /** The thread has ended. What it has told is passed on, then `then` is called. */
  end(then: () => void): void {
    this.#phase = 'away'
    this.#untaken.push(() => {
      this.#tellLost()
      this.#end?.memory.leaves(this.#end.front)
      this.#end = undefined
      then()
    })
    if (this.#untaken.length === 1) this.#goOn()
  }

  /** Nobody says any more how far the other fronts are: what waits for them counts as lost. To be called behind `end`. */
  cut(): void {
    if (this.#untaken.length === 0) return
    this.#untaken = this.#untaken.filter((one) => typeof one === 'function')
    this.#noticed = false
    this.#goOn()
  }

  /** The front ends: nobody waits for it any more. */
  leave(): void {
    this.#end?.memory.leaves(this.#end.front)
  }

  #add(command: Command, receive: Receive): void {
    if (this.#frame.length === 0) setImmediate(() => this.flush())
    assert(this.#end !== undefined, 'a command is for a thread that is there')
    const id = this.#count++ * limits.frontNumbers + this.#end.front
    const bytes = bytesOf(command)
    this.#frameBytes += bytes
    this.#pending.set(id, { receive, bytes, writes: 'options' in command })
    this.#frame.push([id, command.kind === 'watch' ? { ...command, front: this.#end.front } : command])
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
    assert(this.#end !== undefined, 'a frame is of a thread that is there')
    const { memory, front } = this.#end
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
    this.#end?.memory.count(-outcomes.length, -bytes)
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
