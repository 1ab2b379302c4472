import { limits } from '../../src/base/limits/limits.js'
import { frontOf, type FrontFrame, type LateFrame, type OutcomeFrame } from '../../src/protocol/frame.js'
import type { ShardMemory } from '../../src/protocol/shard-memory.js'

/**
 * Sends a frame to one front.
 * @param late the id and caller of a large read's outcome, which travels separately
 */
export type SendFrame = (frame: FrontFrame, late?: Pick<LateFrame, 'id' | 'caller'>) => void

/**
 * Splits the frames of a shard by front: each front gets the outcomes of its commands, the events that it
 * watches and every notice. Clients are answered once all fronts have processed the notices, as the shared
 * memory shows (docs/adr/0045-fronts.md).
 */
export class FrontFrames {
  readonly #memory: ShardMemory
  readonly #watched: Watched
  readonly #fronts = new Map<number, SendFrame>()
  /** The number of frames with notices so far. */
  #noticesSent = 0

  /** @param watched the agents that each front watches */
  constructor(memory: ShardMemory, watched: Watched) {
    this.#memory = memory
    this.#watched = watched
  }

  /**
   * Adds a front. The front queries the current state itself, so its first frame carries the present count of
   * notices; otherwise all fronts would wait until it has processed notices that were sent before.
   */
  add(front: number, send: SendFrame): void {
    this.#fronts.set(front, send)
    if (this.#noticesSent !== 0)
      send({ outcomes: [], events: [], notices: [], appended: false, noticeNo: this.#noticesSent })
  }

  /** Removes a front that has ended. */
  remove(front: number): void {
    this.#fronts.delete(front)
  }

  send(frame: OutcomeFrame): void {
    this.#memory.figures = frame.figures
    if (frame.notices.length > 0) this.#noticesSent = (this.#noticesSent + 1) | 0
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
        send({ outcomes: own, events, notices, appended: frame.appended, noticeNo: this.#noticesSent })
      if (large !== undefined) this.#sendLate(send, all, large)
    }
  }

  /**
   * Sends each large outcome to the front of another node in a frame by itself, so that other frames can
   * overtake it.
   */
  #sendLate(send: SendFrame, outcomes: OutcomeFrame['outcomes'], large: ReadonlyMap<number, string>): void {
    const frame: FrontFrame = {
      outcomes: [],
      events: [],
      notices: [],
      appended: false,
      noticeNo: this.#noticesSent,
      isLate: true,
    }
    for (const one of outcomes) {
      const [id] = one
      const caller = large.get(id)
      if (caller !== undefined) send({ ...frame, outcomes: [one] }, { id, caller })
    }
  }

  #whole({ outcomes, events, notices, appended }: OutcomeFrame): FrontFrame {
    return { outcomes, events, notices, appended, noticeNo: this.#noticesSent }
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

/**
 * The agents that each front watches: the front is sent their commits as events. The empty name means all
 * agents.
 */
export class Watched {
  readonly #fronts = new Map<string, Set<number>>()

  get isEmpty(): boolean {
    return this.#fronts.size === 0
  }

  has(agent: string): boolean {
    return this.#fronts.has(agent)
  }

  isWatchedBy(front: number, agent: string): boolean {
    return this.#fronts.get(agent)?.has(front) === true
  }

  /** Starts or stops watching an agent for a front. */
  watch(front: number, agent: string, on: boolean): void {
    const fronts = this.#fronts.get(agent) ?? new Set()
    if (on) fronts.add(front)
    else fronts.delete(front)
    if (fronts.size > 0) this.#fronts.set(agent, fronts)
    else this.#fronts.delete(agent)
  }

  /** Removes a front that has ended. */
  remove(front: number): void {
    for (const agent of this.#fronts.keys()) this.watch(front, agent, false)
  }
}

export type SendReplies = (frame: OutcomeFrame) => void

/** The last segment that was written and the last segment that is known to be on disk. */
type LogState = () => { written: number; durable: number }

/**
 * Replies that a shard has decided and not yet sent. A frame is sent in order, once every segment that was
 * written before it is on disk, because its outcomes and reads may depend on any of them.
 */
export class PendingReplies {
  readonly #log: LogState
  readonly #send: SendReplies
  readonly #frames: { segment: number; frame: OutcomeFrame }[] = []

  constructor(log: LogState, send: SendReplies) {
    this.#log = log
    this.#send = send
  }

  /** Sends a frame as soon as the segments before it are on disk. */
  add(frame: OutcomeFrame): void {
    this.#frames.push({ segment: this.#log().written, frame })
    this.releaseDurable()
  }

  /** Sends the frames whose segments are on disk. */
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
