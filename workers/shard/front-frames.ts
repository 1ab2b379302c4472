import { limits } from '../../src/base/limits/limits.js'
import { frontOf, type FrontFrame, type LateFrame, type OutcomeFrame } from '../../src/protocol/frame.js'
import type { ShardMemory } from '../../src/protocol/shard-memory.js'

/** Sends a frame to one front. @param late of a large read: which one it is */
export type SendFrame = (frame: FrontFrame, late?: Pick<LateFrame, 'id' | 'caller'>) => void

/**
 * What a shard tells, cut up for the fronts: each gets the outcomes of its own commands, the events that it watches and
 * every notice. Who is to be answered waits until all fronts have processed the notices, which they show in the memory
 * that they share (docs/adr/0045-fronts.md).
 */
export class FrontFrames {
  readonly #memory: ShardMemory
  readonly #watched: Watched
  readonly #fronts = new Map<number, SendFrame>()
  /** Frames with notices so far. */
  #told = 0

  /** @param watched which of them is sent which events */
  constructor(memory: ShardMemory, watched: Watched) {
    this.#memory = memory
    this.#watched = watched
  }

  /**
   * Talks to one more front from now on. What was told before, the front learns by asking; a frame says up to where that is,
   * or else everybody would wait for it to process what it was never sent.
   */
  add(front: number, send: SendFrame): void {
    this.#fronts.set(front, send)
    if (this.#told !== 0) send({ outcomes: [], events: [], notices: [], appended: false, told: this.#told })
  }

  /** A front has gone: what is still told to it is dropped. */
  remove(front: number): void {
    this.#fronts.delete(front)
  }

  tell(frame: OutcomeFrame): void {
    this.#memory.figures = frame.figures
    if (frame.notices.length > 0) this.#told = (this.#told + 1) | 0
    const { notices } = frame
    if (this.#fronts.size === 1) {
      for (const send of this.#fronts.values()) send(this.#whole(frame))
      return
    }
    const outcomes = this.#byFront(frame.outcomes)
    for (const [front, send] of this.#fronts) {
      const all = outcomes.get(front) ?? []
      const large = front < limits.frontsMax ? undefined : frame.large
      const own = large === undefined ? all : all.filter(([id]) => !large.has(id))
      const events = this.#eventsFor(front, frame.events)
      if (own.length + events.length + notices.length > 0)
        send({ outcomes: own, events, notices, appended: frame.appended, told: this.#told })
      if (large !== undefined) this.#sendLate(send, all, large)
    }
  }

  /** Large outcomes for a front of another node each go by themselves: the link to that has others overtake them. */
  #sendLate(send: SendFrame, outcomes: OutcomeFrame['outcomes'], large: ReadonlyMap<number, string>): void {
    const frame = { events: [], notices: [], appended: false, told: this.#told, isLate: true as const }
    for (const one of outcomes) {
      const [id] = one
      const caller = large.get(id)
      if (caller !== undefined) send({ ...frame, outcomes: [one] }, { id, caller })
    }
  }

  #whole({ outcomes, events, notices, appended }: OutcomeFrame): FrontFrame {
    return { outcomes, events, notices, appended, told: this.#told }
  }

  #byFront(outcomes: OutcomeFrame['outcomes']): Map<number, OutcomeFrame['outcomes']> {
    const byFront = new Map<number, OutcomeFrame['outcomes']>()
    for (const one of outcomes) {
      const front = frontOf(one[0])
      const others = byFront.get(front)
      if (others === undefined) byFront.set(front, [one])
      else others.push(one)
    }
    return byFront
  }

  #eventsFor(front: number, events: OutcomeFrame['events']): OutcomeFrame['events'] {
    if (events.length === 0) return events
    if (this.#watched.isWatchedBy(front, '')) return events
    return events.filter(({ agent }) => this.#watched.isWatchedBy(front, agent))
  }
}

/** Which fronts watch which agents: they are sent what these commit as events. The empty name stands for all agents. */
export class Watched {
  readonly #fronts = new Map<string, Set<number>>()

  /** Whether nobody watches anything. */
  get isEmpty(): boolean {
    return this.#fronts.size === 0
  }

  /** Whether any front watches an agent by its name. */
  has(agent: string): boolean {
    return this.#fronts.has(agent)
  }

  /** Whether a front watches an agent by its name. */
  isWatchedBy(front: number, agent: string): boolean {
    return this.#fronts.get(agent)?.has(front) === true
  }

  /** A front begins to watch an agent, or stops. */
  watch(front: number, agent: string, on: boolean): void {
    const fronts = this.#fronts.get(agent) ?? new Set()
    if (on) fronts.add(front)
    else fronts.delete(front)
    if (fronts.size > 0) this.#fronts.set(agent, fronts)
    else this.#fronts.delete(agent)
  }

  /** A front has gone. */
  leave(front: number): void {
    for (const agent of this.#fronts.keys()) this.watch(front, agent, false)
  }
}

/** Sends a frame to the front thread. */
export type SendReplies = (frame: OutcomeFrame) => void

/** How far the log is: the last segment that was written, and the last one that is on disk for sure. */
type LogState = () => { written: number; durable: number }

/**
 * Replies that a shard has decided and not sent. A frame leaves once all segments are on disk that were written when it was made:
 * its outcomes and reads may be of any of them. Frames leave in the order in which they were made.
 */
export class PendingReplies {
  readonly #log: LogState
  readonly #send: SendReplies
  readonly #frames: { segment: number; frame: OutcomeFrame }[] = []

  constructor(log: LogState, send: SendReplies) {
    this.#log = log
    this.#send = send
  }

  /** Sends a frame, as soon as that may be. */
  add(frame: OutcomeFrame): void {
    this.#frames.push({ segment: this.#log().written, frame })
    this.releaseDurable()
  }

  /** Sends what waited for the disk, as far as it is there now. */
  releaseDurable(): void {
    const { durable } = this.#log()
    let sent = 0
    for (const { segment, frame } of this.#frames) {
      if (segment > durable) break
      this.#send(frame)
      sent += 1
    }
    this.#frames.splice(0, sent)
  }
}
