import { emptyGrant } from '../../../auth/grant.js'
import { limits } from '../../../base/limits/limits.js'
import { sentBy, type Command, type Outcome, type PageOutcome } from '../../../protocol/messages.js'
import type { Principal, StreamRequest } from '../../routes/route.js'
import type { Hlc } from '../../../strand/hlc.js'
import { compareHlc } from '../../../strand/hlc.js'
import type { Exchange } from '../exchange.js'
import type { Readable } from './grants.js'
import type { RecentEvents } from './recent-events.js'
import { laterPlace, type LogPlace } from '../../../strand/log-place.js'
import { formatClockCursor, unpassed } from './cursor.js'
import type { BoundedBytes } from '../../limits/bounded-bytes.js'
import { SeenEvent, viewOf, wholeView, type EventBatch, type View } from './seen-event.js'
import { caughtUpEvent, heartbeat, recordEvent } from './events.js'

/**
 * One shard's part of a stream. While it is not live, its records come from the store in pages; a page that reaches the
 * end of what is committed makes it live, because everything committed later comes as an event after that page (the
 * shard's answers and events arrive in order).
 */
export interface Lane {
  shard: number
  live: boolean
  /** True while a page, or the shard's first answer, is awaited. */
  asking: boolean
  /**
   * How often it has fallen behind. A page that was asked for before that last time does not make it live: it may have been read
   * before the shard's thread was told to watch, since commands wait for a thread that is away.
   */
  fallen: number
  /** One agent's stream: the next seq. */
  nextSeq: number
  /** One agent's stream: the moment that its first page begins at. */
  since?: Hlc
  /** A stream of many: the place up to which everything was sent. */
  reached: LogPlace
}

/** Asks a shard for a page of a stream. */
export type AskShard = (shard: number, command: Command, receive: (outcome: Outcome) => void) => void

/** What a stream is made of. */
export interface StreamParts {
  request: StreamRequest
  principal: Principal
  lanes: Lane[]
  recent?: RecentEvents
  readable?: Readable | undefined
  /** The places of cursors made with another number of shards. */
  seen?: LogPlace[][]
  /** Bytes of all streams that wait to be read by clients. */
  unsent: BoundedBytes
  /** Called when streams that waited for room can go on. */
  onRoom(): void
  /** Whether what is in memory may be told: not where another node of a cluster may have gone on. */
  mayAnswer(shard: number): boolean
}

/** One open stream of server-sent events. */
export class Stream {
  readonly exchange: Exchange
  readonly request: StreamRequest
  readonly principal: Principal
  readonly lanes: Lane[]
  /** Undefined for a key, which row policies do not bind. */
  readonly readable: Readable | undefined
  readonly #agents: ReadonlySet<string> | undefined
  readonly #recent: RecentEvents | undefined
  /** The places of cursors made with another number of shards; empty once every shard has passed them. */
  #seen: LogPlace[][]
  readonly #ask: AskShard
  readonly #onRoom: () => void
  readonly #mayAnswer: (shard: number) => boolean
  /** False after a write that the socket did not take whole, until it takes more. */
  #drained = true
  readonly #unsent: BoundedBytes
  /** An upper bound of the bytes that its socket has not taken yet. */
  #waiting = 0
  #caughtUp = false
  #muted = false
  /** Its views by agent; under the empty name if one holds for all agents. */
  readonly #views = new Map<string, View>()

  constructor(exchange: Exchange, about: StreamParts, ask: AskShard) {
    this.#onRoom = about.onRoom
    this.#mayAnswer = about.mayAnswer
    this.exchange = exchange
    this.request = about.request
    this.principal = about.principal
    this.lanes = about.lanes
    this.readable = about.readable
    this.#agents = about.request.agents === undefined ? undefined : new Set(about.request.agents)
    // The stored texts contain every event, so a stream that leaves some out cannot use them.
    this.#recent = this.#showsAll ? about.recent : undefined
    this.#seen = about.seen ?? []
    this.#unsent = about.unsent
    this.#ask = ask
    exchange.onWritable(() => this.#onWritable())
  }

  /** Whether it shows every event of its agents. */
  get #showsAll(): boolean {
    return this.request.filter === undefined && this.readable === undefined
  }

  /** Whether its socket takes more, and its principal does not have too many unsent bytes. */
  get #takesMore(): boolean {
    return this.#drained && this.#unsent.hasRoom(this.principal.id)
  }

  /** Gives back the room of its unsent bytes. @returns whether others have room again because of that */
  release(): boolean {
    const { id } = this.principal
    const wasFull = !this.#unsent.hasRoom(id)
    this.#unsent.give(id, this.#waiting)
    this.#waiting = 0
    return wasFull && this.#unsent.hasRoom(id)
  }

  /** Stops sending: it is about to end. */
  mute(): void {
    this.#muted = true
  }

  /** Starts or continues catching up, if it is not live. */
  catchUp(): void {
    for (const lane of this.lanes) this.#askPage(lane)
    this.#announce()
  }

  /**
   * Events of one shard that were committed a moment ago. Those that the stream already got in a page from the store
   * are left out.
   */
  live(shard: number, batch: EventBatch): void {
    const lane = this.lanes.find((one) => one.shard === shard)
    const [first] = batch.events
    const last = batch.events.at(-1)
    if (lane === undefined || !lane.live || first === undefined || last === undefined) return
    // More than fits into one write is sent in pages, at each reader's own pace.
    if (!this.#takesMore || (batch.size > limits.streamBufferBytes && batch.events.length > 1)) {
      this.fallBehind(lane)
    } else if (this.request.scope === 'agent' && this.#caughtUp && first.event.seq >= lane.nextSeq) {
      lane.nextSeq = last.event.seq + 1
      lane.reached = last.hlc
      this.#send(batch.textOf(this.#viewOf(first.event.agent)))
    } else {
      const fresh = batch.events.filter((seen) => this.#isFresh(lane, seen))
      this.#send(this.#textOf(lane, fresh))
    }
  }

  #isFresh(lane: Lane, { event, hlc }: SeenEvent): boolean {
    return this.request.scope === 'agent' ? event.seq >= lane.nextSeq : compareHlc(hlc, lane.reached) > 0
  }

  /** Takes no more events of a shard until it has caught up. @returns whether it would have taken some */
  pause(shard: number): boolean {
    const lane = this.lanes.find((one) => one.shard === shard)
    if (lane === undefined || !lane.live) return false
    lane.live = false
    return true
  }

  /** From now on the lane's records come from the store again. */
  fallBehind(lane: Lane): void {
    lane.live = false
    lane.fallen += 1
    if (this.#drained) this.#askPage(lane)
  }

  heartbeat(): void {
    if (this.#drained) this.#send(heartbeat)
  }

  #onWritable(): void {
    this.#drained = true
    if (this.release()) this.#onRoom()
    const behind = this.lanes.filter((lane) => !lane.live)
    // Something must be written, see Exchange.onWritable.
    this.#send(heartbeat)
    for (const lane of behind) this.#askPage(lane)
  }

  #askPage(lane: Lane): void {
    if (!lane.asking) this.#takeRecent(lane)
    if (lane.live || lane.asking || !this.#takesMore || this.#muted || !this.exchange.open) return
    lane.asking = true
    const { fallen } = lane
    this.#ask(lane.shard, sentBy(this.principal.id, this.#pageCommand(lane)), (outcome) => {
      lane.asking = false
      if (outcome.kind === 'page') this.#onPage(lane, outcome, fallen)
      // A shard that cannot answer now is asked again when it is back, or by the next heartbeat.
    })
  }

  /** Catches up from the agent's latest events in memory, if they reach back far enough. */
  #takeRecent(lane: Lane): void {
    while (!lane.live && lane.since === undefined && this.#takesMore && this.exchange.open) {
      const page = this.#recent?.from(lane.nextSeq)
      if (page === undefined || !this.#mayAnswer(lane.shard)) return
      lane.nextSeq = page.nextSeq
      lane.live = page.end
      this.#send(page.text)
    }
  }

  #pageCommand(lane: Lane): Command {
    const limit = limits.streamPageRows
    const [agent = ''] = this.request.agents ?? []
    if (this.request.scope === 'agent') {
      const page: Command = { kind: 'streamPage', agent, fromSeq: lane.nextSeq, limit }
      return lane.since === undefined ? page : { ...page, since: lane.since }
    }
    return {
      kind: 'logPage',
      after: lane.reached,
      limit,
      ...(this.#seen.length > 0 && { seen: this.#seen }),
      ...(this.request.agents !== undefined && { agents: [...this.request.agents] }),
    }
  }

  /** @param fallen how often the lane had fallen behind when it asked */
  #onPage(lane: Lane, page: PageOutcome, fallen: number): void {
    if (!this.exchange.open) return
    delete lane.since
    lane.live = page.end && fallen === lane.fallen
    const seen = page.events.map((event) => new SeenEvent(event))
    const text = this.#textOf(lane, seen)
    lane.nextSeq = Math.max(lane.nextSeq, page.nextSeq)
    lane.reached = laterPlace(lane.reached, page.reached)
    if (text !== '') this.#send(text)
    this.#announce()
    this.#askPage(lane)
  }

  /** The text of the events that this stream shows; moves the lane's place past them. */
  #textOf(lane: Lane, events: readonly SeenEvent[]): string {
    let text = ''
    for (const seen of events) {
      const { event, hlc } = seen
      if (this.#agents !== undefined && !this.#agents.has(event.agent)) continue
      lane.nextSeq = event.seq + 1
      lane.reached = { ...hlc, ...(event.tie !== undefined && { tie: event.tie }) }
      if (seen.isShown(this.#viewOf(event.agent))) text += recordEvent(this.#cursor(), event)
    }
    return text
  }

  /** Its view of an agent; it shows nothing of an agent whose policies for the user are not known. */
  #viewOf(agent: string): View {
    if (this.#showsAll) return wholeView
    const name = this.readable === undefined ? '' : agent
    const known = this.#views.get(name)
    if (known !== undefined) return known
    const readable = this.readable === undefined ? undefined : (this.readable.get(agent) ?? emptyGrant)
    const view = viewOf(this.request.filter, readable)
    this.#views.set(name, view)
    return view
  }

  #announce(): void {
    if (this.#caughtUp || !this.lanes.every(isLive)) return
    this.#caughtUp = true
    this.#send(caughtUpEvent(this.#cursor()))
  }

  #cursor(): string {
    const [lane] = this.lanes
    if (this.request.scope === 'agent') return String(Math.max(0, (lane?.nextSeq ?? 1) - 1))
    const reached = this.lanes.map((one) => one.reached)
    this.#seen = unpassed(this.#seen, reached)
    return formatClockCursor({ reached, seen: this.#seen })
  }

  #send(text: string | Uint8Array): void {
    if (text.length === 0 || this.#muted) return
    this.#drained = this.exchange.write(text)
    if (this.#drained) return
    const bytes = Buffer.byteLength(text)
    this.#unsent.add(this.principal.id, bytes)
    this.#waiting += bytes
    // Later events would pile up behind the slow reader: they come from the store when the socket takes more.
    for (const lane of this.lanes) lane.live = false
  }
}

function isLive(lane: Lane): boolean {
  return lane.live
}
