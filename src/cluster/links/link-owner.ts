import { RefusedError } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import { machineClock } from '../../base/clock.js'
import { build } from '../../base/version.js'
import { Calls, type Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { LEASE_MARGIN } from '../members/lease.js'
import type { LinkMessage } from './framing.js'
import { Link } from './link.js'
import { linkFull, ShardRelay } from './shard-relay.js'
import type { LinkSockets } from './sockets.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import { isToOwner, type NodeId, type ToFront, type ToOwner } from '../../protocol/link-messages.js'
import type { CallingFront, HostStatus, NodeCalls } from '../host.js'

/** Dependencies of the owner's side of links. */
export interface LinkOwnerParts {
  /** Answers the calls of a front of another node. @param ended aborts when the link has ended */
  calls(front: () => CallingFront, ended: AbortSignal): Handlers<NodeCalls>
  threads: ShardThreads
  status: Pick<HostStatus, 'readOnly'>
  lease: LeaseMemory
  /** How long a node may answer without receiving from this one, milliseconds. */
  linkLeaseMs: number
  own: NodeId
  /** Whether a node is alive with that incarnation. */
  isMember(node: NodeId): Promise<boolean>
  log: Logger
}

/**
 * Links of other nodes' fronts to the shards that this node owns. Frames are passed on unchanged. As for
 * fronts of this process, a shard waits for each front as long as it may answer (docs/adr/0047-links.md).
 */
export class LinkOwner {
  readonly #parts: LinkOwnerParts
  readonly #links = new Set<OwnerLink>()
  readonly #free = Array.from(
    { length: limits.frontNumbers - limits.frontsMax },
    (_none, nth) => limits.frontsMax + nth,
  )
  readonly #timer: NodeJS.Timeout

  constructor(parts: LinkOwnerParts) {
    this.#parts = parts
    this.#timer = setInterval(() => this.#look(), limits.linkPingMs)
  }

  /** Accepts a connection of another node. */
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

  /**
   * Resolves when no front of another node sends to a shard any more, or admits requests by what that shard
   * has published.
   */
  async leaving(shard: number): Promise<void> {
    await Promise.all([...this.#links].map((link) => link.leaving(shard)))
  }

  /** Announces that this node is about to release all its shards. */
  announceStop(): void {
    for (const link of this.#links) link.send({ kind: 'stops' })
  }

  /** Offers a released shard to a node. */
  offer(node: string, shard: number): void {
    for (const link of this.#links) if (link.node === node) link.send({ kind: 'offered', shard })
  }

  /** Ends all links. Call it when the shards have ended; their last answers are still being sent. */
  close(): void {
    clearInterval(this.#timer)
    for (const link of this.#links) link.finish()
  }

  #look(): void {
    const nowMs = machineClock()
    for (const link of this.#links) link.look(nowMs)
  }
}

class OwnerLink {
  readonly #parts: LinkOwnerParts
  readonly #front: number
  readonly #link: Link
  readonly #calls: Calls<NodeCalls, object>
  readonly #relays = new Map<number, ShardRelay>()
  readonly #ended: () => void
  readonly #closing = new AbortController()
  /** The latest time at which the other node may answer, by this node's clock. */
  #mayAnswerUntilMs = 0
  #receivedAtMs = machineClock()
  #node: string | undefined
  #isJoining = false
  /** The other node has stopped answering. */
  #isEnding = false

  /** @param own the number of its front, and a callback for when that number is free again */
  constructor(sockets: LinkSockets, parts: LinkOwnerParts, own: { front: number; ended(): void }) {
    this.#parts = parts
    this.#front = own.front
    this.#ended = () => own.ended()
    this.#link = new Link(sockets, {
      message: (message) => this.#message(message),
      closed: (reason) => this.#closed(reason),
    })
    const failed = (error: Error) => this.close(error.message)
    const handlers = parts.calls(() => ({ failed }), this.#closing.signal)
    this.#calls = new Calls((message, _transfer, caller) => this.#sendCall(message, caller), {
      ...handlers,
      // A front that sends invalid data only breaks its own link.
      lose: ({ reason }) => this.close(reason),
    })
  }

  /** The name of the other node; undefined before its hello. */
  get node(): string | undefined {
    return this.#node
  }

  send(message: ToFront): void {
    this.#link.send(message)
  }

  /**
   * Others may overtake large replies to callers, such as pages of exports, as they may overtake large
   * answers of shards. Messages of the node itself are sent in order, so no caller can take their capacity.
   * @throws RefusedError if too much waits for the caller
   */
  #sendCall(message: unknown, caller: string | undefined): void {
    const call: ToFront = { kind: 'call', message }
    if (caller === undefined) this.send(call)
    else if (!this.#link.sendBySize(call, caller)) throw new RefusedError(linkFull)
  }

  /** Ends the link after everything was sent. */
  finish(): void {
    this.#link.finish()
  }

  close(reason: string): void {
    this.#link.close(reason)
  }

  /**
   * Closes a link on which nothing arrives, and releases an ended one once the other node cannot answer any
   * more.
   */
  look(nowMs: number): void {
    const silentMs = nowMs - this.#receivedAtMs
    const mostMs = this.#node === undefined ? limits.linkHandshakeMs : this.#parts.linkLeaseMs * LEASE_MARGIN
    if (!this.#closing.signal.aborted) {
      this.#link.look(nowMs)
      if (silentMs > mostMs) this.close('the peer sent nothing for too long')
      // Writes wait until it has processed notices, such as the revocation of a key.
      const isLate = [...this.#relays.values()].some((relay) => relay.waitsMs(nowMs) > limits.linkTimeoutMs)
      if (isLate) this.close('the peer did not process the notices of a shard in time')
    }
    if (this.#closing.signal.aborted && nowMs >= this.#mayAnswerUntilMs) this.#release()
  }

  /** Connects the other node to the thread of a shard. */
  join(shard: number): void {
    if (this.#node === undefined || this.#isEnding || this.#closing.signal.aborted) return
    const { threads } = this.#parts
    const relay = ShardRelay.open({ shard, front: this.#front, threads, link: this.#link })
    // The next thread of the shard triggers another join.
    if (relay === undefined) return
    this.#relays.set(shard, relay)
    this.send({ kind: 'joined', ...relay.thread })
  }

  /** Resolves when the other node sends nothing more to a shard, or cannot answer any more. */
  async leaving(shard: number): Promise<void> {
    const relay = this.#relays.get(shard)
    if (relay === undefined) return
    this.send({ kind: 'leaving', ...relay.thread })
    await relay.released
  }

  #message(message: LinkMessage): void {
    this.#receivedAtMs = machineClock()
    if (message.kind === 'frame') {
      this.#relays.get(message.shard)?.send(message.frame)
      return
    }
    const received = message.kind === 'value' ? message.value : undefined
    if (!isToOwner(received)) this.close('the peer sent an unknown message')
    else if (this.#node === undefined) void this.#hello(received)
    else this.#handle(received)
  }

  async #hello(hello: ToOwner): Promise<void> {
    const { isMember, lease, log, threads, own } = this.#parts
    const refuse = (reason: string, isElsewhere = false) => {
      this.send({ kind: 'refused', reason, isElsewhere })
      // The refusal is sent before the link closes.
      setImmediate(() => setImmediate(() => this.close(reason)))
    }
    // If the database is slow, pings arrive before the check of membership has ended.
    if (this.#isJoining) return
    this.#isJoining = true
    if (hello.kind !== 'hello') return refuse('Expected "hello" as the first message')
    if (hello.version !== build) return refuse(`This node runs version ${build}, the peer ${hello.version}`)
    const { from, to } = hello
    // Addresses come from the database and may be wrong.
    if (to.node !== own.node || to.incarnation !== own.incarnation)
      return refuse(
        `This is the node ${own.node}, incarnation ${own.incarnation}, not ${to.node}, incarnation ${to.incarnation}`,
        to.node === own.node && lease.holds(),
      )
    const { node } = from
    if (node === own.node) return refuse('A node cannot link to itself')
    const isKnown = await isMember(from).catch(() => undefined)
    if (this.#closing.signal.aborted) return
    if (isKnown !== true)
      return refuse(
        `The node ${node} is not a live member of the cluster, as the database of the node ${own.node} shows it`,
        isKnown === false && lease.holds(),
      )
    this.#node = node
    log.info({ node }, 'another node forwards requests for the shards of this node')
    this.send({ kind: 'welcome', front: this.#front })
    for (let shard = 0; shard < threads.shards.count; shard++) this.join(shard)
  }

  #handle(message: ToOwner): void {
    switch (message.kind) {
      case 'ping':
        this.#pong(message.atMs)
        return
      case 'serves':
        this.#relayOf(message)?.serves(message.noticeNo)
        return
      case 'acknowledged':
        this.#relayOf(message)?.taken(message.noticeNo)
        return
      case 'released':
        this.#relayOf(message)?.release()
        return
      case 'leaves':
        this.#relayOf(message)?.frontLeft()
        return
      case 'ends':
        this.#isEnding = true
        this.#mayAnswerUntilMs = 0
        for (const relay of this.#relays.values()) relay.frontLeft()
        return
      case 'call':
        this.#calls.receive(message.message)
        return
      case 'hello':
        this.close('the peer sent "hello" twice')
    }
  }

  /** Ignores messages about a thread that has been replaced. */
  #relayOf({ shard, term }: ShardRelay['thread']): ShardRelay | undefined {
    const relay = this.#relays.get(shard)
    return relay?.thread.term === term ? relay : undefined
  }

  /**
   * Extends how long the other node may answer, from when it sent the ping: never beyond this node's lease.
   */
  #pong(atMs: number): void {
    const { lease, linkLeaseMs, status } = this.#parts
    const nowMs = machineClock()
    const forMs = Math.max(0, Math.min(linkLeaseMs, lease.untilMs - nowMs))
    if (forMs > 0) this.#mayAnswerUntilMs = nowMs + linkLeaseMs * LEASE_MARGIN
    const pong: ToFront = { kind: 'pong', atMs, forMs, readOnly: status.readOnly }
    this.#link.sendUrgent(pong)
  }

  #closed(reason: string): void {
    if (this.#node !== undefined)
      this.#parts.log.warn({ node: this.#node, reason }, 'the link to another node ended')
    this.#closing.abort()
    this.#calls.end(new Error(`The link to the node ${this.#node} ended`))
    for (const relay of this.#relays.values()) relay.linkEnded()
  }

  #release(): void {
    this.#parts.threads.leave(this.#front)
    for (const relay of this.#relays.values()) relay.leave()
    if ([...this.#relays.values()].every((relay) => relay.isClosed)) this.#ended()
  }
}
