import { assert } from '../../../base/assert.js'
import { type Clock, systemClock } from '../../../base/clock.js'
import type { Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { Outcome } from '../../../protocol/messages.js'
import type { StreamEvent } from '../../../protocol/stream-messages.js'
import { unexpected } from '../../routes/answers.js'
import type { Principal, StreamRequest, TokenUser } from '../../routes/route.js'
import { zeroHlc } from '../../../strand/hlc.js'
import { momentLower } from '../../../strand/moment.js'
import { isValidityUnknown } from '../auth/api-key-sync.js'
import type { StreamBounds } from '../../limits/bounds.js'
import type { Exchange } from '../exchange.js'
import { FanOut } from './fan-out.js'
import { locateCommand, copyGrantText, StreamGrants, type ReadGrants } from './grants.js'
import { PageQueue } from './page-queue.js'
import { clockStart, parseSeqCursor } from './cursor.js'
import { RecentEvents } from './recent-events.js'
import { EventBatch } from './shared-event.js'
import { retryLine, badCursor, keyEnded, tokenRevoked, tooManyOpen, tooManyStreams } from './events.js'
import { Stream, type Lane, type StreamParts } from './stream.js'

/** Opens streams, sends them events, and ends them (docs/adr/0007-streams.md). */
export class StreamHub {
  readonly #shards: Shards
  /** Streams of single agents, by agent; `uses` also counts streams that are being opened. */
  readonly #byAgent = new Map<string, { streams: Set<Stream>; uses: number; recent: RecentEvents }>()
  readonly #global = new Set<Stream>()
  /** Streams of both kinds that were opened with a user's token. */
  readonly #ofUsers = new Set<Stream>()
  readonly #heartbeat: NodeJS.Timeout
  readonly #expiry: NodeJS.Timeout
  readonly #opening = new Map<Exchange, Principal>()
  /** Counts streams on all fronts, in total and per principal, including those that are being opened. */
  readonly #bounds: StreamBounds
  readonly #fanOut = new FanOut()
  readonly #grants: StreamGrants
  readonly #pages: readonly PageQueue[]
  /** Agents that a shard has refused to watch, by shard; the empty name means all agents. */
  readonly #unwatched: readonly Set<string>[]
  #count = 0

  constructor(shards: Shards, bounds: StreamBounds, clock: Clock = systemClock) {
    this.#shards = shards
    this.#bounds = bounds
    this.#grants = new StreamGrants(shards, bounds.grants)
    const pagesOf = (shard: number) =>
      new PageQueue((command, receive) =>
        // Delivered after earlier events, and like them a few at a time.
        shards.sendTo(shard, command, (outcome) => this.#fanOut.each([outcome], receive)),
      )
    this.#pages = Array.from({ length: shards.count }, (_none, shard) => pagesOf(shard))
    this.#unwatched = this.#pages.map(() => new Set())
    this.#heartbeat = setInterval(() => this.#sendHeartbeats(), limits.streamHeartbeatMs)
    const unexpired = ({ claims }: TokenUser) => claims.exp * 1_000 > clock()
    this.#expiry = setInterval(() => {
      this.endInvalidUsers(unexpired)
      this.#finishAll(this.#all().filter(({ principal }) => isValidityUnknown(principal, shards)))
      this.#retry()
    }, limits.streamExpiryMs)
  }

  get count(): number {
    return this.#count
  }

  open(exchange: Exchange, request: StreamRequest | Refusal, principal: Principal): void {
    if ('code' in request) exchange.refuse(request)
    else if (!this.#bounds.open.reserve(principal.id))
      exchange.refuse(this.#bounds.open.isFull ? tooManyOpen : tooManyStreams)
    else if (request.scope === 'agent') this.#openAgent(exchange, request, principal)
    else void this.#openGlobal(exchange, request, principal)
  }

  /** Sends the events of one shard's commit, in commit order. */
  events(shard: number, events: readonly StreamEvent[]): void {
    const byAgent = new Map<string, StreamEvent[]>()
    for (const event of events) {
      const ofAgent = byAgent.get(event.agent)
      if (ofAgent === undefined) byAgent.set(event.agent, [event])
      else ofAgent.push(event)
    }
    for (const [agent, ofAgent] of byAgent) this.#publishToAgent(shard, agent, ofAgent)
    if (this.#global.size > 0) this.#publish(this.#global, shard, new EventBatch(events))
  }

  /**
   * The thread of a shard was restarted: it watches nothing yet, and events of its last commits may be lost.
   */
  restarted(shard: number): void {
    for (const agent of this.#byAgent.keys())
      if (this.#shards.shardOf(agent) === shard) this.#watchAgain(shard, agent)
    this.#watchAgain(shard, '')
    this.#pages[shard]?.retry()
    this.#grants.policiesChanged()
    for (const stream of this.#all()) {
      // A notice of changed policies may be lost as well, if the thread died before sending it.
      const isOfUser = stream.readable !== undefined
      if (isOfUser && stream.lanes.some((lane) => lane.shard === shard)) this.#finish(stream)
    }
  }

  /** Ends streams of users on agents whose policies changed; clients reconnect under the new policies. */
  endPoliciesChanged(agents: readonly string[]): void {
    this.#grants.policiesChanged()
    const affected = [...this.#ofUsers].filter(({ readable }) => agents.some((agent) => readable?.has(agent)))
    this.#finishAll(affected)
  }

  /** Drops the latest events of agents from memory, because a body among them may have been erased. */
  forget(agents: readonly string[]): void {
    for (const agent of agents) this.#byAgent.get(agent)?.recent.clear()
  }

  /**
   * Makes the streams of agents continue from the store, because their strands grew by records without
   * events.
   */
  rereadStore(agents: readonly string[]): void {
    for (const agent of agents) {
      const watched = this.#byAgent.get(agent)
      if (watched === undefined) continue
      watched.recent.clear()
      for (const stream of watched.streams) {
        for (const lane of stream.lanes) stream.fallBehind(lane)
      }
    }
  }

  /** Ends the streams of a principal whose credential is no longer valid. */
  endPrincipal(principalId: string): void {
    for (const [exchange, { id }] of this.#opening) if (id === principalId) exchange.refuse(keyEnded)
    this.#finishAll(this.#all().filter(({ principal }) => principal.id === principalId))
  }

  endInvalidUsers(isGood: (user: TokenUser) => boolean): void {
    for (const [exchange, { user }] of this.#opening) {
      if (user !== undefined && !isGood(user)) exchange.refuse(tokenRevoked)
    }
    this.#finishAll([...this.#ofUsers].filter(({ principal: { user } }) => user && !isGood(user)))
  }

  /** Ends every stream; clients reconnect after a while. */
  close(): void {
    clearInterval(this.#heartbeat)
    clearInterval(this.#expiry)
    for (const stream of this.#all()) this.#finish(stream)
  }

  #openAgent(exchange: Exchange, request: StreamRequest, principal: Principal): void {
    const [agent = ''] = request.agents ?? []
    const cursor = request.cursor === undefined ? undefined : parseSeqCursor(request.cursor)
    if (request.cursor !== undefined && cursor === undefined) {
      this.#refuse(exchange, badCursor, principal)
      return
    }
    const shard = this.#shards.shardOf(agent)
    const lane: Lane = {
      shard,
      live: false,
      awaitsPage: false,
      fallBehindCount: 0,
      nextSeq: 0,
      reached: zeroHlc,
    }
    if (cursor !== undefined) lane.nextSeq = cursor + 1
    else if (request.since !== undefined) lane.since = momentLower(request.since) ?? zeroHlc
    // Watches first: records committed after the answer to the second command arrive as events.
    this.#retain(agent)
    this.#opening.set(exchange, principal)
    this.#shards.send(agent, locateCommand(agent, principal.id, request), (outcome) => {
      this.#opening.delete(exchange)
      if (outcome.kind !== 'located' || !exchange.open) {
        this.#release(agent)
        this.#refuse(exchange, unexpected(outcome), principal)
        return
      }
      if (cursor === undefined && request.since === undefined) {
        lane.nextSeq = outcome.headSeq + 1
        lane.live = true
      }
      const watched = this.#byAgent.get(agent)
      assert(watched !== undefined, 'an agent is watched while a stream of it is being opened')
      const readable = outcome.readable && new Map([[agent, copyGrantText(outcome.readable)]])
      const quotaRefusal = this.#grants.reserve(principal, readable)
      if (quotaRefusal !== undefined) {
        this.#release(agent)
        this.#refuse(exchange, quotaRefusal, principal)
        return
      }
      const parts = {
        request,
        principal,
        lanes: [lane],
        recent: watched.recent,
        readable,
      }
      const stream = this.#begin(exchange, parts)
      watched.streams.add(stream)
      exchange.onDisconnect(() => this.#end(stream))
      stream.catchUp()
    })
  }

  async #openGlobal(exchange: Exchange, request: StreamRequest, principal: Principal): Promise<void> {
    const from = clockStart(request, this.#shards.count)
    if (from !== undefined && 'code' in from) {
      this.#refuse(exchange, from, principal)
      return
    }
    let readable: ReadGrants | undefined
    if (request.access !== undefined) {
      this.#opening.set(exchange, principal)
      const located = await this.#grants.readableBy(request, principal.id)
      this.#opening.delete(exchange)
      if ('code' in located || !exchange.open) {
        this.#refuse(exchange, 'code' in located ? located : keyEnded, principal)
        return
      }
      readable = located
    }
    const quotaRefusal = this.#grants.reserve(principal, readable)
    if (quotaRefusal !== undefined) {
      this.#refuse(exchange, quotaRefusal, principal)
      return
    }
    const lanes: Lane[] = []
    for (let shard = 0; shard < this.#shards.count; shard++) {
      // A lane requests no page until its shard has answered where its log ends.
      const reached = from?.reached[shard] ?? zeroHlc
      lanes.push({ shard, live: false, awaitsPage: true, fallBehindCount: 0, nextSeq: 0, reached })
    }
    const parts = { request, principal, lanes, readable, seen: from?.seen ?? [] }
    const stream = this.#begin(exchange, parts)
    this.#global.add(stream)
    exchange.onDisconnect(() => this.#end(stream))
    for (const lane of lanes) {
      this.#watch(lane.shard, { agent: '', on: true }, (outcome) => {
        if (!exchange.open) return
        if (outcome.kind !== 'watching') {
          // Otherwise records of this shard would be missing unnoticed: the stream ends, and the client
          // reconnects.
          this.#finish(stream)
          return
        }
        lane.awaitsPage = false
        // A live stream begins at the current end of the log; later commits arrive as events.
        if (from === undefined) {
          lane.reached = outcome.reached
          lane.live = true
        }
        stream.catchUp()
      })
    }
  }

  #begin(exchange: Exchange, ownParts: Omit<StreamParts, 'unsent' | 'onCapacity' | 'mayAnswer'>): Stream {
    exchange.begin(200, 'text/event-stream', [['X-Accel-Buffering', 'no']])
    const isOpen = () => exchange.open
    const parts = {
      ...ownParts,
      unsent: this.#bounds.unsent,
      onCapacity: () => this.#catchUpAll(),
      mayAnswer: (shard: number) => this.#shards.leaseRefusal(shard) === undefined,
    }
    const stream = new Stream(exchange, parts, (shard, command, receive) =>
      this.#pages[shard]?.enqueue({ caller: ownParts.principal.id, command, receive, isOpen }),
    )
    exchange.write(retryLine)
    this.#count++
    if (ownParts.principal.user !== undefined) this.#ofUsers.add(stream)
    return stream
  }

  #publishToAgent(shard: number, agent: string, events: StreamEvent[]): void {
    const watched = this.#byAgent.get(agent)
    if (watched === undefined) return
    const { streams, recent } = watched
    if (streams.size >= limits.streamRecentReadersMin)
      recent.push(events.filter(({ isSystem }) => isSystem !== true))
    else recent.clear()
    if (streams.size > 0) this.#publish(streams, shard, new EventBatch(events))
  }

  /**
   * Sends events to streams, a few at a time. If too many bytes wait already, the streams continue from the
   * store.
   */
  #publish(streams: Iterable<Stream>, shard: number, batch: EventBatch): void {
    if (this.#fanOut.backlogBytes <= limits.streamBacklogBytesMax) {
      this.#fanOut.each(streams, (stream) => stream.live(shard, batch), batch.size)
      return
    }
    const paused = [...streams].filter((stream) => stream.pause(shard))
    this.#fanOut.each(paused, (stream) => stream.catchUp())
  }

  #finishAll(streams: readonly Stream[]): void {
    for (const stream of streams) stream.mute()
    this.#fanOut.each(streams, (stream) => this.#finish(stream))
  }

  #refuse(exchange: Exchange, refusal: Refusal, principal: Principal): void {
    this.#bounds.open.release(principal.id)
    exchange.refuse(refusal)
  }

  /** Ends a stream from the server's side; its client reconnects after a while. */
  #finish(stream: Stream): void {
    if (!stream.exchange.open) return
    stream.exchange.end(200, retryLine)
    this.#end(stream)
  }

  #end(stream: Stream): void {
    this.#count--
    this.#bounds.open.release(stream.principal.id)
    if (stream.release()) this.#catchUpAll()
    this.#ofUsers.delete(stream)
    this.#grants.release(stream.principal, stream.readable)
    if (stream.request.scope === 'global') {
      this.#global.delete(stream)
      if (this.#global.size > 0) return
      for (let shard = 0; shard < this.#shards.count; shard++) this.#watch(shard, { agent: '', on: false })
      return
    }
    const [agent = ''] = stream.request.agents ?? []
    this.#byAgent.get(agent)?.streams.delete(stream)
    this.#release(agent)
  }

  /** Counts a use of an agent, and makes its shard send events of it. */
  #retain(agent: string): void {
    const watched = this.#byAgent.get(agent)
    if (watched !== undefined) {
      watched.uses++
      return
    }
    this.#byAgent.set(agent, { streams: new Set(), uses: 1, recent: new RecentEvents() })
    this.#watch(this.#shards.shardOf(agent), { agent, on: true })
  }

  #release(agent: string): void {
    const watched = this.#byAgent.get(agent)
    if (watched === undefined || --watched.uses > 0) return
    this.#byAgent.delete(agent)
    this.#watch(this.#shards.shardOf(agent), { agent, on: false })
  }

  #watch(
    shard: number,
    { agent, on }: { agent: string; on: boolean },
    receive?: (outcome: Outcome) => void,
  ): void {
    const refused = ({ kind }: Outcome) => {
      // `restarted` is called when a shard that does not serve does so again.
      if (on && kind !== 'watching' && this.#shards.linkOf(shard).serving) this.#unwatched[shard]?.add(agent)
    }
    this.#shards.sendTo(shard, { kind: 'watch', agent, on, front: 0 }, receive ?? refused)
  }

  /** Watches an agent, or all, whose latest events may be lost: its streams continue from the store. */
  #watchAgain(shard: number, agent: string): void {
    const watched = this.#byAgent.get(agent)
    const streams = agent === '' ? this.#global : (watched?.streams ?? new Set())
    // It may have been released since the shard refused to watch it.
    if (watched === undefined && streams.size === 0) return
    watched?.recent.clear()
    this.#watch(shard, { agent, on: true })
    for (const stream of streams)
      for (const lane of stream.lanes) if (lane.shard === shard) stream.fallBehind(lane)
  }

  /** Requests again what shards have refused. */
  #retry(): void {
    for (const [shard, pages] of this.#pages.entries()) {
      if (this.#shards.leaseRefusal(shard) !== undefined) continue
      const agents = [...(this.#unwatched[shard] ?? [])]
      this.#unwatched[shard]?.clear()
      for (const agent of agents) this.#watchAgain(shard, agent)
      pages.retry()
    }
  }

  #sendHeartbeats(): void {
    this.#fanOut.each(this.#all(), (stream) => {
      stream.heartbeat()
      stream.catchUp()
    })
  }

  #catchUpAll(): void {
    this.#fanOut.each(this.#all(), (stream) => stream.catchUp())
  }

  #all(): Stream[] {
    return [...[...this.#byAgent.values()].flatMap(({ streams }) => [...streams]), ...this.#global]
  }
}
