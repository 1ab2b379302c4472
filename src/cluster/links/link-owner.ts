import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { machineClock } from '../../base/clock.js'
import { version } from '../../base/version.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { LEASE_MARGIN } from '../members/lease.js'
import type { LinkMessage } from './framing.js'
import { Link } from './link.js'
import { ShardRelay } from './shard-relay.js'
import type { LinkSockets } from './sockets.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import { isToOwner, type NodeId, type ToFront, type ToOwner } from '../../protocol/link-messages.js'
import type { MainCalls, PeerCalls } from '../../server/calls/front-messages.js'
import type { CallingFront } from '../../server/calls/main-calls.js'
import type { Standing } from '../../server/state.js'

/** What an owner of shards needs for the fronts of other nodes. */
export interface LinkOwnerParts {
  /** Answers the calls of a front of another node. @param gone aborts when the front has gone */
  calls(front: () => CallingFront, gone: AbortSignal): Handlers<MainCalls>
  threads: ShardThreads
  standing: Standing
  lease: LeaseMemory
  /** How long a node may answer without hearing of this one, milliseconds. */
  linkLeaseMs: number
  /** This node. */
  own: NodeId
  /** Whether a node is alive, as that incarnation. */
  isMember(node: NodeId): Promise<boolean>
  log: Logger
}

/**
 * The fronts of other nodes at the shards that this node owns: their frames are passed on as they are, and they are waited for
 * as fronts of this process are, as long as they may answer (docs/adr/0047-links.md).
 */
export class LinkOwner {
  readonly #parts: LinkOwnerParts
  readonly #links = new Set<OwnerLink>()
  /** Numbers that no front has. */
  readonly #free = Array.from(
    { length: limits.frontNumbers - limits.frontsMax },
    (_none, nth) => limits.frontsMax + nth,
  )
  readonly #timer: NodeJS.Timeout

  constructor(parts: LinkOwnerParts) {
    this.#parts = parts
    this.#timer = setInterval(() => this.#look(), limits.linkPingMs)
  }

  /** Takes a connection of another node. */
  take(sockets: LinkSockets): void {
    const front = this.#free.shift()
    if (front === undefined) {
      for (const socket of Object.values(sockets)) socket.destroy()
      return
    }
    const ended = () => {
      this.#links.delete(link)
      this.#free.push(front)
    }
    const link = new OwnerLink(sockets, this.#parts, { front, ended })
    this.#links.add(link)
  }

  /** A shard has a new thread. */
  replaced(shard: number): void {
    for (const link of this.#links) link.join(shard)
  }

  /** Resolves when no front of another node sends anything more to a shard, or lets anybody in by what that has told. */
  async leaving(shard: number): Promise<void> {
    await Promise.all([...this.#links].map((link) => link.leaving(shard)))
  }

  /** This node is about to give all its shards up. */
  stops(): void {
    for (const link of this.#links) link.tell({ kind: 'stops' })
  }

  /** Lets a node have a shard that this one has given up. */
  offer(node: string, shard: number): void {
    for (const link of this.#links) if (link.node === node) link.tell({ kind: 'offered', shard })
  }

  /** Ends all. To be called when the shards have ended: what they answered last is under way to the other nodes. */
  close(): void {
    clearInterval(this.#timer)
    for (const link of this.#links) link.finish()
  }

  #look(): void {
    const nowMs = machineClock()
    for (const link of this.#links) link.look(nowMs)
  }
}

/** One other node. */
class OwnerLink {
  readonly #parts: LinkOwnerParts
  readonly #front: number
  readonly #link: Link
  readonly #calls: Calls<MainCalls, PeerCalls>
  readonly #relays = new Map<number, ShardRelay>()
  readonly #ended: () => void
  readonly #over = new AbortController()
  /** Until when the other node may answer at most, by the clock of this one. */
  #mayAnswerUntilMs = 0
  #heardAtMs = machineClock()
  #node: string | undefined
  #asking = false
  /** The other node answers nobody any more. */
  #isEnding = false

  /** @param own the number of its front, and what is called when that may be another one's */
  constructor(sockets: LinkSockets, parts: LinkOwnerParts, own: { front: number; ended(): void }) {
    this.#parts = parts
    this.#front = own.front
    this.#ended = () => own.ended()
    this.#link = new Link(sockets, {
      message: (message) => this.#message(message),
      closed: (reason) => this.#closed(reason),
    })
    const failed = (error: Error) => this.close(error.message)
    const handlers = parts.calls(() => ({ call: this.#calls.call, failed }), this.#over.signal)
    this.#calls = new Calls((message) => this.#tellCall(message), {
      ...handlers,
      // A front that sends invalid data only breaks its own link.
      lose: ({ reason }) => this.close(reason),
    })
  }

  /** The name of the other node, once that is known. */
  get node(): string | undefined {
    return this.#node
  }

  tell(message: ToFront): void {
    this.#link.send(message)
  }

  /** Pages of exports and the like may be overtaken, as large answers of shards are. */
  #tellCall(message: unknown): void {
    const told: ToFront = { kind: 'call', message }
    this.#link.sendBySize(told)
  }

  /** Ends it once everything is sent. */
  finish(): void {
    this.#link.finish()
  }

  close(reason: string): void {
    this.#link.close(reason)
  }

  /** Ends a link by which nothing comes, and what has ended once the other node cannot answer any more. */
  look(nowMs: number): void {
    const silentMs = nowMs - this.#heardAtMs
    const mostMs = this.#node === undefined ? limits.linkHandshakeMs : this.#parts.linkLeaseMs * LEASE_MARGIN
    if (!this.#over.signal.aborted) {
      this.#link.look(nowMs)
      if (silentMs > mostMs) this.close('it was silent for too long')
      // Writes wait for what it has to take, such as that a key has ended.
      const isLate = [...this.#relays.values()].some((relay) => relay.waitsMs(nowMs) > limits.linkSilenceMs)
      if (isLate) this.close('it did not take in time what a shard tells')
    }
    if (this.#over.signal.aborted && nowMs >= this.#mayAnswerUntilMs) this.#release()
  }

  /** Talks to the thread of a shard for the other node. */
  join(shard: number): void {
    if (this.#node === undefined || this.#isEnding || this.#over.signal.aborted) return
    const { threads } = this.#parts
    const relay = ShardRelay.open({ shard, front: this.#front, threads, link: this.#link })
    // It is asked again for the next thread.
    if (relay === undefined) return
    this.#relays.set(shard, relay)
    this.tell({ kind: 'joined', ...relay.thread })
  }

  /** Resolves when it sends nothing more to a shard, or cannot answer any more. */
  async leaving(shard: number): Promise<void> {
    const relay = this.#relays.get(shard)
    if (relay === undefined) return
    this.tell({ kind: 'leaving', ...relay.thread })
    await relay.released
  }

  #message(message: LinkMessage): void {
    this.#heardAtMs = machineClock()
    if (message.kind === 'frame') {
      this.#relays.get(message.shard)?.send(message.frame)
      return
    }
    const said = message.kind === 'value' ? message.value : undefined
    if (!isToOwner(said)) this.close('the peer sent an unknown message')
    else if (this.#node === undefined) void this.#hello(said)
    else this.#said(said)
  }

  async #hello(said: ToOwner): Promise<void> {
    const { isMember, log, threads, own } = this.#parts
    const refuse = (reason: string) => {
      this.tell({ kind: 'refused', reason })
      // What was written goes out first.
      setImmediate(() => setImmediate(() => this.close(reason)))
    }
    // It asks whether it may answer before it is known, where the database takes long.
    if (this.#asking) return
    this.#asking = true
    if (said.kind !== 'hello') return refuse('Expected the other node to say who it is')
    if (said.version !== version)
      return refuse(`This node runs version ${version}, the other one ${said.version}`)
    const { from, to } = said
    // Addresses of nodes come from the database, and may lead to any of them.
    if (to.node !== own.node || to.incarnation !== own.incarnation)
      return refuse(
        `This is the node ${own.node}, start ${own.incarnation}, not ${to.node}, start ${to.incarnation}`,
      )
    const { node } = from
    if (node === own.node) return refuse('A node has no link to itself')
    const isKnown = await isMember(from).catch(() => false)
    if (this.#over.signal.aborted) return
    if (!isKnown) return refuse(`The node ${node} is not known as one that is alive`)
    this.#node = node
    log.info({ node }, 'another node takes requests for the shards of this one')
    this.tell({ kind: 'welcome', front: this.#front })
    for (let shard = 0; shard < threads.shards.count; shard++) this.join(shard)
  }

  #said(said: ToOwner): void {
    switch (said.kind) {
      case 'ping':
        this.#pong(said.atMs)
        return
      case 'serves':
        this.#relayOf(said)?.serves(said.told)
        return
      case 'taken':
        this.#relayOf(said)?.taken(said.told)
        return
      case 'released':
        this.#relayOf(said)?.release()
        return
      case 'leaves':
        this.#relayOf(said)?.frontLeaves()
        return
      case 'ends':
        this.#isEnding = true
        this.#mayAnswerUntilMs = 0
        for (const relay of this.#relays.values()) relay.frontLeaves()
        return
      case 'call':
        this.#calls.take(said.message)
        return
      case 'hello':
        this.close('it said twice who it is')
    }
  }

  /** What is said of a thread that has a successor is of no use any more. */
  #relayOf({ shard, term }: ShardRelay['thread']): ShardRelay | undefined {
    const relay = this.#relays.get(shard)
    return relay?.thread.term === term ? relay : undefined
  }

  /** It may answer from when it asked on, for as long as this node may at most: not at all where it has no lease. */
  #pong(atMs: number): void {
    const { lease, linkLeaseMs, standing } = this.#parts
    const nowMs = machineClock()
    const forMs = Math.max(0, Math.min(linkLeaseMs, lease.untilMs - nowMs))
    if (forMs > 0) this.#mayAnswerUntilMs = nowMs + linkLeaseMs * LEASE_MARGIN
    const pong: ToFront = { kind: 'pong', atMs, forMs, readOnly: standing.readOnly }
    this.#link.sendUrgent(pong)
  }

  #closed(reason: string): void {
    if (this.#node !== undefined)
      this.#parts.log.warn({ node: this.#node, reason }, 'the link to another node ended')
    this.#over.abort()
    this.#calls.end(new Error(`The link to the node ${this.#node} ended`))
    for (const relay of this.#relays.values()) relay.linkEnded()
  }

  #release(): void {
    this.#parts.threads.leave(this.#front)
    for (const relay of this.#relays.values()) relay.leave()
    if ([...this.#relays.values()].every((relay) => relay.isClosed)) this.#ended()
  }
}
