import { assert } from '../../../base/assert.js'
import { systemClock } from '../../../base/clock.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { Shards } from '../../../dispatch/links/shards.js'
import type { Outcome, StreamEvent } from '../../../protocol/messages.js'
import { unexpected } from '../../routes/answers.js'
import type { Principal, StreamRequest, TokenUser } from '../../routes/route.js'
import { zeroHlc } from '../../../strand/hlc.js'
import { momentLower } from '../../../strand/moment.js'
import { isUnknown } from '../auth/api-key-upkeep.js'
import type { StreamBounds } from '../../limits/bounds.js'
import type { Exchange } from '../exchange.js'
import { FanOut } from './fan-out.js'
import { locateCommand, ownText, StreamGrants, type Readable } from './grants.js'
import { PageQueue } from './page-queue.js'
import { before, parseClockCursor, parseSeqCursor, type ClockCursor } from './cursor.js'
import { RecentEvents } from './recent-events.js'
import { EventBatch } from './seen-event.js'
import { retryLine, badCursor, revoked, tokenRevoked, tooManyStreams } from './events.js'
import { Stream, type Lane, type StreamParts } from './stream.js'

/** Opens streams, hands each its events, and ends them (docs/adr/0007-streams.md). */
export class StreamHub {
  readonly #shards: Shards
  /** Streams of one agent, by that agent; `uses` also counts those that are being opened. */
  readonly #byAgent = new Map<string, { streams: Set<Stream>; uses: number; recent: RecentEvents }>()
  readonly #global = new Set<Stream>()
  /** Streams of both kinds that were opened by a user's token. */
  readonly #ofUsers = new Set<Stream>()
  readonly #heartbeat: NodeJS.Timeout
  readonly #expiry: NodeJS.Timeout
  /** Streams that are being opened, with their principals. */
  readonly #opening = new Map<Exchange, Principal>()
  /** How many streams there are on all fronts, and how many each principal has, including those that are being opened. */
  readonly #bounds: StreamBounds
  readonly #fanOut = new FanOut()
  readonly #grants: StreamGrants
  /** By shard. */
  readonly #pages: readonly PageQueue[]
  #count = 0

  constructor(shards: Shards, bounds: StreamBounds) {
    this.#shards = shards
    this.#bounds = bounds
    this.#grants = new StreamGrants(shards, bounds.grants)
    const pagesOf = (shard: number) =>
      new PageQueue((command, receive) =>
        // After the events that came before it, and like these a few at a time.
        shards.sendTo(shard, command, (outcome) => this.#fanOut.each([outcome], receive)),
      )
    this.#pages = Array.from({ length: shards.count }, (_none, shard) => pagesOf(shard))
    this.#heartbeat = setInterval(() => this.#beat(), limits.streamHeartbeatMs)
    const unexpired = ({ claims }: TokenUser) => claims.exp * 1_000 > systemClock()
    this.#expiry = setInterval(() => {
      this.endOfUsers(unexpired)
      this.#finishAll(this.#all().filter(({ principal }) => isUnknown(principal, shards)))
    }, limits.streamExpiryMs)
  }

  /** Streams of this front. */
  get count(): number {
    return this.#count
  }

  open(exchange: Exchange, request: StreamRequest | Refusal, principal: Principal): void {
    if ('code' in request) exchange.refuse(request)
    else if (this.#bounds.count.value >= limits.streamsMax) {
      exchange.refuse(refuse('overloaded', 'Too many streams are open, try again', { retryAfterSecs: 5 }))
    } else if (!this.#bounds.shares.take(principal.id)) {
      exchange.refuse(tooManyStreams)
    } else if (request.scope === 'agent') this.#openAgent(exchange, request, principal)
    else void this.#openGlobal(exchange, request, principal)
  }

  /** Events of one shard's commit, in the order that they were committed. */
  events(shard: number, events: readonly StreamEvent[]): void {
    const byAgent = new Map<string, StreamEvent[]>()
    for (const event of events) {
      const others = byAgent.get(event.agent)
      if (others === undefined) byAgent.set(event.agent, [event])
      else others.push(event)
    }
    for (const [agent, own] of byAgent) this.#tellAgent(shard, agent, own)
    if (this.#global.size > 0) this.#tell(this.#global, shard, new EventBatch(events))
  }

  /** A shard's thread is new: it watches nothing yet, and events of its last commits may be lost. */
  restarted(shard: number): void {
    for (const [agent, { recent }] of this.#byAgent) {
      if (this.#shards.shardOf(agent) !== shard) continue
      recent.clear()
      this.#watch(shard, { agent, on: true })
    }
    if (this.#global.size > 0) this.#watch(shard, { agent: '', on: true })
    this.#grants.policiesChanged()
    for (const stream of this.#all()) {
      for (const lane of stream.lanes) if (lane.shard === shard) stream.fallBehind(lane)
      // A change of policies may be lost, too, if the thread died before it was sent.
      const isUsers = stream.readable !== undefined
      if (isUsers && stream.lanes.some((lane) => lane.shard === shard)) this.#finish(stream)
    }
  }

  /** Ends users' streams of agents whose policies changed: clients connect again, under the new ones. */
  endUsersOf(agents: readonly string[]): void {
    this.#grants.policiesChanged()
    const affected = [...this.#ofUsers].filter(({ readable }) => agents.some((agent) => readable?.has(agent)))
    this.#finishAll(affected)
  }

  /** Drops the latest events of agents from memory: a body among them may be erased now. */
  forget(agents: readonly string[]): void {
    for (const agent of agents) this.#byAgent.get(agent)?.recent.clear()
  }

  /** Has the streams of agents continue from the store: their strands grew by records without events. */
  readAgain(agents: readonly string[]): void {
    for (const agent of agents) {
      const watched = this.#byAgent.get(agent)
      if (watched === undefined) continue
      watched.recent.clear()
      for (const stream of watched.streams) {
        for (const lane of stream.lanes) stream.fallBehind(lane)
      }
    }
  }

  /** Ends the streams of a credential that is no longer valid. */
  endOf(principalId: string): void {
    for (const [exchange, { id }] of this.#opening) if (id === principalId) exchange.refuse(revoked)
    this.#finishAll(this.#all().filter(({ principal }) => principal.id === principalId))
  }

  /** Ends the streams of users whose tokens are no longer valid. */
  endOfUsers(isGood: (user: TokenUser) => boolean): void {
    for (const [exchange, { user }] of this.#opening) {
      if (user !== undefined && !isGood(user)) exchange.refuse(tokenRevoked)
    }
    this.#finishAll([...this.#ofUsers].filter(({ principal: { user } }) => user && !isGood(user)))
  }

  /** Ends every stream; clients connect again after a while. */
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
    const lane: Lane = { shard, live: false, asking: false, fallen: 0, nextSeq: 0, reached: zeroHlc }
    if (cursor !== undefined) lane.nextSeq = cursor + 1
    else if (request.since !== undefined) lane.since = momentLower(request.since) ?? zeroHlc
    // Watching first: what is committed after the answer to the second command comes as an event.
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
      const readable = outcome.readable && new Map([[agent, ownText(outcome.readable)]])
      const full = this.#grants.take(principal, readable)
      if (full !== undefined) {
        this.#release(agent)
        this.#refuse(exchange, full, principal)
        return
      }
      const about = {
        request,
        principal,
        lanes: [lane],
        recent: watched.recent,
        readable,
      }
      const stream = this.#begin(exchange, about)
      watched.streams.add(stream)
      exchange.onGone(() => this.#end(stream))
      stream.catchUp()
    })
  }

  async #openGlobal(exchange: Exchange, request: StreamRequest, principal: Principal): Promise<void> {
    const from = this.#startOf(request)
    if (from !== undefined && 'code' in from) {
      this.#refuse(exchange, from, principal)
      return
    }
    let readable: Readable | undefined
    if (request.access !== undefined) {
      this.#opening.set(exchange, principal)
      const located = await this.#grants.readableBy(request, principal.id)
      this.#opening.delete(exchange)
      if ('code' in located || !exchange.open) {
        this.#refuse(exchange, 'code' in located ? located : revoked, principal)
        return
      }
      readable = located
    }
    const full = this.#grants.take(principal, readable)
    if (full !== undefined) {
      this.#refuse(exchange, full, principal)
      return
    }
    const lanes: Lane[] = []
    for (let shard = 0; shard < this.#shards.count; shard++) {
      // A lane asks for no page before its shard has answered where its log ends.
      const reached = from?.reached[shard] ?? zeroHlc
      lanes.push({ shard, live: false, asking: true, fallen: 0, nextSeq: 0, reached })
    }
    const about = { request, principal, lanes, readable, seen: from?.seen ?? [] }
    const stream = this.#begin(exchange, about)
    this.#global.add(stream)
    exchange.onGone(() => this.#end(stream))
    for (const lane of lanes) {
      this.#watch(lane.shard, { agent: '', on: true }, (outcome) => {
        if (!exchange.open) return
        if (outcome.kind !== 'watching') {
          // Without this shard its records would be missing unnoticed, so the stream ends and the client connects
          // again.
          this.#finish(stream)
          return
        }
        lane.asking = false
        // A live stream begins at what is committed now, and later commits come as events.
        if (from === undefined) {
          lane.reached = outcome.reached
          lane.live = true
        }
        stream.catchUp()
      })
    }
  }

  /** Where a global stream begins; undefined for now. */
  #startOf(request: StreamRequest): ClockCursor | Refusal | undefined {
    if (request.cursor !== undefined) return parseClockCursor(request.cursor, this.#shards.count) ?? badCursor
    if (request.since === undefined) return undefined
    const start = before(momentLower(request.since) ?? zeroHlc)
    return { reached: Array.from({ length: this.#shards.count }, () => start), seen: [] }
  }

  #begin(exchange: Exchange, about: Omit<StreamParts, 'unsent' | 'onRoom' | 'mayAnswer'>): Stream {
    exchange.begin(200, 'text/event-stream', [['X-Accel-Buffering', 'no']])
    const wanted = () => exchange.open
    const parts = {
      ...about,
      unsent: this.#bounds.unsent,
      onRoom: () => this.#goOn(),
      mayAnswer: (shard: number) => this.#shards.leaseRefusal(shard) === undefined,
    }
    const stream = new Stream(exchange, parts, (shard, command, receive) =>
      this.#pages[shard]?.ask({ command, receive, wanted }),
    )
    exchange.write(retryLine)
    this.#count++
    this.#bounds.count.add(1)
    if (about.principal.user !== undefined) this.#ofUsers.add(stream)
    return stream
  }

  #tellAgent(shard: number, agent: string, events: StreamEvent[]): void {
    const watched = this.#byAgent.get(agent)
    if (watched === undefined) return
    const { streams, recent } = watched
    if (streams.size >= limits.streamRecentReadersMin) recent.push(events)
    else recent.clear()
    if (streams.size > 0) this.#tell(streams, shard, new EventBatch(events))
  }

  /** Sends events to streams, a few at a time; if too much already waits, they continue from the store. */
  #tell(streams: Iterable<Stream>, shard: number, batch: EventBatch): void {
    if (this.#fanOut.backlogBytes <= limits.streamBacklogBytesMax) {
      this.#fanOut.each(streams, (stream) => stream.live(shard, batch), batch.size)
      return
    }
    const paused = [...streams].filter((stream) => stream.pause(shard))
    this.#fanOut.each(paused, (stream) => stream.catchUp())
  }

  /** Stops streams from sending, and ends them. */
  #finishAll(streams: readonly Stream[]): void {
    for (const stream of streams) stream.mute()
    this.#fanOut.each(streams, (stream) => this.#finish(stream))
  }

  #refuse(exchange: Exchange, refusal: Refusal, principal: Principal): void {
    this.#bounds.shares.give(principal.id)
    exchange.refuse(refusal)
  }

  /** Ends a stream from this side: its client connects again after a while. */
  #finish(stream: Stream): void {
    if (!stream.exchange.open) return
    stream.exchange.end(200, retryLine)
    this.#end(stream)
  }

  #end(stream: Stream): void {
    this.#count--
    this.#bounds.count.add(-1)
    this.#bounds.shares.give(stream.principal.id)
    if (stream.release()) this.#goOn()
    this.#ofUsers.delete(stream)
    this.#grants.give(stream.principal, stream.readable)
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

  /** Makes sure that the shard sends events of the agent. */
  #retain(agent: string): void {
    const used = this.#byAgent.get(agent)
    if (used !== undefined) {
      used.uses++
      return
    }
    this.#byAgent.set(agent, { streams: new Set(), uses: 1, recent: new RecentEvents() })
    this.#watch(this.#shards.shardOf(agent), { agent, on: true })
  }

  #release(agent: string): void {
    const used = this.#byAgent.get(agent)
    if (used === undefined || --used.uses > 0) return
    this.#byAgent.delete(agent)
    this.#watch(this.#shards.shardOf(agent), { agent, on: false })
  }

  #watch(
    shard: number,
    { agent, on }: { agent: string; on: boolean },
    receive: (outcome: Outcome) => void = ignore,
  ): void {
    this.#shards.sendTo(shard, { kind: 'watch', agent, on, front: 0 }, receive)
  }

  #beat(): void {
    this.#fanOut.each(this.#all(), (stream) => {
      stream.heartbeat()
      stream.catchUp()
    })
  }

  #goOn(): void {
    this.#fanOut.each(this.#all(), (stream) => stream.catchUp())
  }

  #all(): Stream[] {
    return [...[...this.#byAgent.values()].flatMap(({ streams }) => [...streams]), ...this.#global]
  }
}

/** A shard that cannot watch now is asked again when it is back. */
function ignore(): void {}
