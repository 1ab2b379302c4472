import { emptyGrant } from '../../../auth/grant.js'
import { limits } from '../../../base/limits/limits.js'
import type { Quota } from '../../../base/quota.js'
import { sentBy, type Command, type Outcome } from '../../../protocol/messages.js'
import type { PageOutcome } from '../../../protocol/stream-messages.js'
import { reachesStrand } from '../../routes/parameters.js'
import type { Principal, StreamRequest } from '../../routes/route.js'
import type { Hlc } from '../../../strand/hlc.js'
import { compareHlc } from '../../../strand/hlc.js'
import type { Exchange } from '../exchange.js'
import type { ReadGrants } from './grants.js'
import type { RecentEvents } from './recent-events.js'
import { laterPosition, type RecordPosition } from '../../../strand/record-position.js'
import { formatClockCursor, notYetPassed } from './cursor.js'
import { SharedEvent, viewOf, wholeView, type EventBatch, type View } from './shared-event.js'
import { caughtUpEvent, heartbeat, recordEvent } from './events.js'

/**
 * One shard's part of a stream. While it is not live, its records are read from the store in pages. A page
 * that reaches the end of the log makes it live: later commits arrive as events after that page, because the
 * answers and events of a shard arrive in order.
 */
export interface Lane {
  shard: number
  live: boolean
  /** Whether a page, or the shard's first answer, is awaited. */
  awaitsPage: boolean
  /**
   * How often the lane has fallen behind. A page that was requested before the last time does not make it
   * live: it may have been read before the shard's thread began to watch, because commands wait for an
   * unavailable thread.
   */
  fallBehindCount: number
  nextSeq: number
  /** Stream of one agent: the moment at which its first page starts. */
  since?: Hlc
  /** Stream of many agents: the position up to which everything was sent. */
  reached: RecordPosition
}

/** Requests a page of a stream from a shard. */
export type RequestPage = (shard: number, command: Command, receive: (outcome: Outcome) => void) => void

export interface StreamParts {
  request: StreamRequest
  principal: Principal
  lanes: Lane[]
  recent?: RecentEvents
  readable?: ReadGrants | undefined
  /** Positions of cursors made with another number of shards. */
  seen?: RecordPosition[][]
  /** Counts unread bytes of all streams. */
  unsent: Quota
  /** Called when streams that waited for capacity can continue. */
  onCapacity(): void
  /**
   * Whether events in memory may be sent: not if another node of the cluster may have committed newer ones.
   */
  mayAnswer(shard: number): boolean
}

/** One open stream of server-sent events. */
export class Stream {
  readonly exchange: Exchange
  readonly request: StreamRequest
  readonly principal: Principal
  readonly lanes: Lane[]
  /** Undefined for a key, to which row policies do not apply. */
  readonly readable: ReadGrants | undefined
  readonly #agents: ReadonlySet<string> | undefined
  readonly #recent: RecentEvents | undefined
  /** Positions of cursors made with another number of shards; empty once every shard has passed them. */
  #seen: RecordPosition[][]
  readonly #requestPage: RequestPage
  readonly #onCapacity: () => void
  readonly #mayAnswer: (shard: number) => boolean
  /** False after a write that the socket has buffered, until it accepts more. */
  #drained = true
  readonly #unsent: Quota
  /** An upper bound of the bytes in its socket's buffer. */
  #waiting = 0
  #caughtUp = false
  #muted = false
  /** Views by agent; under the empty name if one view applies to all agents. */
  readonly #views = new Map<string, View>()

  constructor(exchange: Exchange, parts: StreamParts, requestPage: RequestPage) {
    this.#onCapacity = parts.onCapacity
    this.#mayAnswer = parts.mayAnswer
    this.exchange = exchange
    this.request = parts.request
    this.principal = parts.principal
    this.lanes = parts.lanes
    this.readable = parts.readable
    this.#agents = parts.request.agents === undefined ? undefined : new Set(parts.request.agents)
    // Recent events are those of the whole view, so a stream that filters events cannot use them.
    this.#recent = this.#showsAll ? parts.recent : undefined
    this.#seen = parts.seen ?? []
    this.#unsent = parts.unsent
    this.#requestPage = requestPage
    exchange.onWritable(() => this.#onWritable())
  }

  get #showsAll(): boolean {
    const { filter, types } = this.request
    return filter === undefined && types === undefined && this.readable === undefined
  }

  /** Whether the socket accepts more, and the principal does not have too many unread bytes. */
  get #canSend(): boolean {
    return this.#drained && this.#unsent.hasCapacity(this.principal.id)
  }

  /**
   * Releases its unread bytes.
   * @returns whether other streams of the principal have capacity again because of that
   */
  release(): boolean {
    const { id } = this.principal
    const wasFull = !this.#unsent.hasCapacity(id)
    this.#unsent.release(id, this.#waiting)
    this.#waiting = 0
    return wasFull && this.#unsent.hasCapacity(id)
  }

  /** Stops sending, because the stream is about to end. */
  mute(): void {
    this.#muted = true
  }

  /** Starts or continues to catch up with the store, unless the stream is live. */
  catchUp(): void {
    for (const lane of this.lanes) this.#requestNextPage(lane)
    this.#announceCaughtUp()
  }

  /**
   * Sends events that one shard has just committed. Skips those that the stream already got in a page from
   * the store.
   */
  live(shard: number, batch: EventBatch): void {
    const lane = this.lanes.find((candidate) => candidate.shard === shard)
    const [first] = batch.events
    const last = batch.events.at(-1)
    if (lane === undefined || !lane.live || first === undefined || last === undefined) return
    // Events that do not fit into one write are sent in pages, at each client's own pace.
    if (!this.#canSend || (batch.size > limits.streamBufferBytes && batch.events.length > 1)) {
      this.fallBehind(lane)
    } else if (this.request.scope === 'agent' && this.#caughtUp && first.event.seq >= lane.nextSeq) {
      lane.nextSeq = last.event.seq + 1
      lane.reached = last.hlc
      this.#send(batch.textOf(this.#viewOf(first.event.agent)))
    } else {
      const newEvents = batch.events.filter((seen) => this.#isNew(lane, seen))
      this.#send(this.#textOf(lane, newEvents))
    }
  }

  #isNew(lane: Lane, { event, hlc }: SharedEvent): boolean {
    return this.request.scope === 'agent' ? event.seq >= lane.nextSeq : compareHlc(hlc, lane.reached) > 0
  }

  /** Accepts no more events of a shard until it has caught up. @returns whether it was live */
  pause(shard: number): boolean {
    const lane = this.lanes.find((candidate) => candidate.shard === shard)
    if (lane === undefined || !lane.live) return false
    lane.live = false
    return true
  }

  /** Makes the lane read its records from the store again. */
  fallBehind(lane: Lane): void {
    lane.live = false
    lane.fallBehindCount += 1
    if (this.#drained) this.#requestNextPage(lane)
  }

  heartbeat(): void {
    if (this.#drained) this.#send(heartbeat)
  }

  #onWritable(): void {
    this.#drained = true
    if (this.release()) this.#onCapacity()
    const lanesBehind = this.lanes.filter((lane) => !lane.live)
    // Something must be written, see Exchange.onWritable.
    this.#send(heartbeat)
    for (const lane of lanesBehind) this.#requestNextPage(lane)
  }

  #requestNextPage(lane: Lane): void {
    if (!lane.awaitsPage) this.#sendRecent(lane)
    if (lane.live || lane.awaitsPage || !this.#canSend || this.#muted || !this.exchange.open) return
    lane.awaitsPage = true
    const { fallBehindCount } = lane
    this.#requestPage(lane.shard, sentBy(this.principal.id, this.#pageCommand(lane)), (outcome) => {
      lane.awaitsPage = false
      if (outcome.kind === 'page') this.#onPage(lane, outcome, fallBehindCount)
      // After a failure, the page is requested again at the next heartbeat.
    })
  }

  /** Catches up from the agent's recent events in memory, if they reach back far enough. */
  #sendRecent(lane: Lane): void {
    while (!lane.live && lane.since === undefined && this.#canSend && this.exchange.open) {
      const page = this.#recent?.from(lane.nextSeq)
      if (page === undefined || !this.#mayAnswer(lane.shard)) return
      lane.nextSeq = page.nextSeq
      lane.live = page.end
      this.#send(page.text)
    }
  }

  #pageCommand(lane: Lane): Command {
    const { types } = this.request
    const rows = { limit: limits.streamPageRows, ...(types !== undefined && { types }) }
    const [agent = ''] = this.request.agents ?? []
    if (this.request.scope === 'agent') {
      const page: Command = { kind: 'streamPage', agent, fromSeq: lane.nextSeq, ...rows }
      return lane.since === undefined ? page : { ...page, since: lane.since }
    }
    return {
      kind: 'logPage',
      after: lane.reached,
      ...rows,
      ...(this.#seen.length > 0 && { seen: this.#seen }),
      ...(this.request.agents !== undefined && { agents: [...this.request.agents] }),
    }
  }

  /** @param fallBehindCount that of the lane when the page was requested */
  #onPage(lane: Lane, page: PageOutcome, fallBehindCount: number): void {
    if (!this.exchange.open) return
    delete lane.since
    lane.live = page.end && fallBehindCount === lane.fallBehindCount
    const seen = page.events.map((event) => new SharedEvent(event))
    const text = this.#textOf(lane, seen)
    lane.nextSeq = Math.max(lane.nextSeq, page.nextSeq)
    lane.reached = laterPosition(lane.reached, page.reached)
    if (text !== '') this.#send(text)
    this.#announceCaughtUp()
    this.#requestNextPage(lane)
  }

  /** The text of the events that this stream shows; advances the lane past them. */
  #textOf(lane: Lane, events: readonly SharedEvent[]): string {
    let text = ''
    for (const seen of events) {
      const { event, hlc } = seen
      if (this.#agents !== undefined && !this.#agents.has(event.agent)) continue
      lane.nextSeq = event.seq + 1
      lane.reached = { ...hlc, ...(event.tie !== undefined && { tie: event.tie }) }
      if (this.#shows(seen)) text += recordEvent(this.#cursor(), event)
    }
    return text
  }

  /** Whether the stream shows an event; the agents of a stream of all agents are not in its request. */
  #shows(seen: SharedEvent): boolean {
    const { agent } = seen.event
    return reachesStrand(this.principal, agent) && seen.isShown(this.#viewOf(agent))
  }

  /** The view of an agent; shows nothing of an agent for which the user's grant is unknown. */
  #viewOf(agent: string): View {
    if (this.#showsAll) return wholeView
    const name = this.readable === undefined ? '' : agent
    const known = this.#views.get(name)
    if (known !== undefined) return known
    const readable = this.readable === undefined ? undefined : (this.readable.get(agent) ?? emptyGrant)
    const view = viewOf(this.request, readable)
    this.#views.set(name, view)
    return view
  }

  #announceCaughtUp(): void {
    if (this.#caughtUp || !this.lanes.every(isLive)) return
    this.#caughtUp = true
    this.#send(caughtUpEvent(this.#cursor()))
  }

  #cursor(): string {
    const [lane] = this.lanes
    if (this.request.scope === 'agent') return String(Math.max(0, (lane?.nextSeq ?? 1) - 1))
    const reached = this.lanes.map((part) => part.reached)
    this.#seen = notYetPassed(this.#seen, reached)
    return formatClockCursor({ reached, seen: this.#seen })
  }

  #send(text: string | Uint8Array): void {
    if (text.length === 0 || this.#muted) return
    this.#drained = this.exchange.write(text)
    if (this.#drained) return
    const bytes = Buffer.byteLength(text)
    this.#unsent.reserveBeyond(this.principal.id, bytes)
    this.#waiting += bytes
    // Later events would pile up behind a slow reader, so they are read from the store when the socket
    // accepts more.
    for (const lane of this.lanes) lane.live = false
  }
}

function isLive(lane: Lane): boolean {
  return lane.live
}
