import { limits } from '../base/limits.js'
import type { Command, Outcome, PageOutcome, StreamEvent } from '../protocol/messages.js'
import type { Principal, StreamRequest } from '../routes/route.js'
import type { Condition } from '../strand/condition.js'
import type { Hlc } from '../strand/hlc.js'
import { parseHlc, zeroHlc } from '../strand/hlc.js'
import type { Exchange } from './exchange.js'
import type { RecentEvents } from './recent-events.js'
import { laterPlace, type LogPlace } from '../strand/log-place.js'
import { formatClockCursor, unpassed } from './stream-cursor.js'
import { caughtUpEvent, hasField, heartbeat, isReadable, recordEvent } from './stream-events.js'

/**
 * One shard's part of a stream. While it is not live, its records come from the store in pages; a page that reaches
 * the end of what is committed makes it live, because everything committed later comes as an event behind that page
 * (the shard's answers and events arrive in order).
 */
export interface Lane {
  shard: number
  live: boolean
  /** True while a page, or the shard's first word, is on its way. */
  asking: boolean
  /** One agent's stream: the next seq. */
  nextSeq: number
  /** One agent's stream: the moment that its first page begins at. */
  since?: Hlc
  /** A stream of many: the place up to which everything was sent. */
  reached: LogPlace
}

/** What a user may read, by agent: the conditions of its policies, of one of which all must hold. */
export type Readable = ReadonlyMap<string, Condition[][]>

/** How a stream asks a shard. */
export type AskShard = (shard: number, command: Command, receive: (outcome: Outcome) => void) => void

/** What a stream is made of. */
export interface StreamParts {
  request: StreamRequest
  principal: Principal
  lanes: Lane[]
  recent?: RecentEvents
  readable?: Readable | undefined
  /** What a cursor of other numbers of shards had told. */
  seen?: LogPlace[][]
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
  /** What a cursor of other numbers of shards had told; empty once all of it lies behind. */
  #seen: LogPlace[][]
  readonly #ask: AskShard
  /** False from a write that the socket did not take whole until it wants more. */
  #drained = true
  #caughtUp = false

  constructor(exchange: Exchange, about: StreamParts, ask: AskShard) {
    this.exchange = exchange
    this.request = about.request
    this.principal = about.principal
    this.lanes = about.lanes
    this.readable = about.readable
    this.#agents = about.request.agents === undefined ? undefined : new Set(about.request.agents)
    // The texts that are kept carry every event, so they are of no use to a stream that leaves some out.
    this.#recent = this.#showsAll ? about.recent : undefined
    this.#seen = about.seen ?? []
    this.#ask = ask
    exchange.onWritable(() => this.#onWritable())
  }

  /** True when every event of a tick can go to this stream in the same bytes as to others like it. */
  get plain(): boolean {
    return this.#drained && this.#caughtUp && this.#showsAll && this.lanes.every(isLive)
  }

  /** Whether it leaves out none of its agents' events. */
  get #showsAll(): boolean {
    return this.request.filter === undefined && this.readable === undefined
  }

  /** Starts or goes on catching up, where it is not live. */
  catchUp(): void {
    for (const lane of this.lanes) this.#askPage(lane)
    this.#announce()
  }

  /** Events of one shard that were committed just now. */
  live(shard: number, events: readonly StreamEvent[]): void {
    const lane = this.lanes.find((one) => one.shard === shard)
    if (lane === undefined || !lane.live) return
    const size = events.reduce((sum, event) => sum + event.data.length, 0)
    if (!this.#drained || size > limits.streamBufferBytes) {
      this.fallBehind(lane)
      return
    }
    this.#send(this.#textOf(lane, events))
  }

  /** The text of events that many streams share. Advances this stream's place. */
  liveShared(
    shard: number,
    { text, nextSeq, reached }: { text: string; nextSeq: number; reached: Hlc },
  ): void {
    const lane = this.lanes.find((one) => one.shard === shard)
    if (lane === undefined) return
    lane.nextSeq = nextSeq
    lane.reached = reached
    this.#send(text)
  }

  /** From here on the lane's records come from the store again. */
  fallBehind(lane: Lane): void {
    lane.live = false
    if (this.#drained) this.#askPage(lane)
  }

  heartbeat(): void {
    if (this.#drained) this.#send(heartbeat)
  }

  #onWritable(): void {
    this.#drained = true
    const behind = this.lanes.filter((lane) => !lane.live)
    // Something must be written: see Exchange.onWritable.
    this.#send(heartbeat)
    for (const lane of behind) this.#askPage(lane)
  }

  #askPage(lane: Lane): void {
    if (!lane.asking) this.#takeRecent(lane)
    if (lane.live || lane.asking || !this.#drained || !this.exchange.open) return
    lane.asking = true
    this.#ask(lane.shard, this.#pageCommand(lane), (outcome) => {
      lane.asking = false
      if (outcome.kind === 'page') this.#onPage(lane, outcome)
      // A shard that cannot answer now is asked again when it is back, or by the next heartbeat.
    })
  }

  /** Catches up from the agent's latest events, as far as they reach back. */
  #takeRecent(lane: Lane): void {
    while (!lane.live && lane.since === undefined && this.#drained && this.exchange.open) {
      const page = this.#recent?.from(lane.nextSeq)
      if (page === undefined) return
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

  #onPage(lane: Lane, page: PageOutcome): void {
    if (!this.exchange.open) return
    delete lane.since
    lane.live = page.end
    const text = this.#textOf(lane, page.events)
    lane.nextSeq = Math.max(lane.nextSeq, page.nextSeq)
    lane.reached = laterPlace(lane.reached, page.reached)
    if (text !== '') this.#send(text)
    this.#announce()
    this.#askPage(lane)
  }

  /** The text of the events that this stream shows, and the lane's place behind them. */
  #textOf(lane: Lane, events: readonly StreamEvent[]): string {
    let text = ''
    for (const event of events) {
      if (this.#agents !== undefined && !this.#agents.has(event.agent)) continue
      lane.nextSeq = event.seq + 1
      lane.reached = {
        ...(parseHlc(event.hlc) ?? zeroHlc),
        ...(event.tie !== undefined && { tie: event.tie }),
      }
      if (this.readable !== undefined && !isReadable(event, this.readable.get(event.agent))) continue
      if (this.request.filter !== undefined && !hasField(event, this.request.filter)) continue
      text += recordEvent(this.#cursor(), event)
    }
    return text
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

  #send(text: string): void {
    if (text === '') return
    this.#drained = this.exchange.write(text)
    if (this.#drained) return
    // What follows would pile up behind the slow reader: it comes from the store when the socket wants more.
    for (const lane of this.lanes) lane.live = false
  }
}

function isLive(lane: Lane): boolean {
  return lane.live
}
