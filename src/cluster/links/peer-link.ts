import { assert } from '../../base/assert.js'
import { refuse, type Refusal, RefusedError } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { machineClock } from '../../base/clock.js'
import { build } from '../../base/version.js'
import { Calls } from '../../dispatch/calls.js'
import type { ShardConnection } from '../../dispatch/links/shard-connection.js'
import type { ShardLink } from '../../dispatch/links/shard-link.js'
import type { LinkMessage } from './framing.js'
import { Link } from './link.js'
import { connectLink, type LinkSockets } from './sockets.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { isToFront, type NodeId, type ToFront, type ToOwner } from '../../protocol/link-messages.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import type { NodeCalls, PeerAddress, PeerNotices } from '../host.js'

/** Receives the events of a link. */
interface PeerLinkListener {
  /** The other node has accepted the link. */
  up(): void
  /** The other node is about to release all its shards. */
  stops(): void
  /** The other node has a lease from another database than that of this node. */
  elsewhere(): void
  /** The link has ended. */
  ended(reason: string): void
}

const noLink = refuse('unavailable', 'The link to the node that serves this agent has ended, try again', {
  retryAfterSecs: 1,
})

const slowLink = refuse(
  'unavailable',
  'The link to the node that owns the shard of this agent is slow or interrupted, try again',
  { retryAfterSecs: 1 },
)
const ownerCutOff = refuse(
  'unavailable',
  'The node that owns the shard of this agent cannot reach the database of its cluster, try again',
  { retryAfterSecs: 1 },
)

/** Dependencies of a link. */
export interface LinkParts {
  own: PeerNotices['own']
  /** This front's ends of all shards. */
  links: readonly ShardLink[]
  /** The other node has released a shard for this one. */
  offered?(shard: number): void
}

/** The link of a front of this node to the shards of one other node. */
export class PeerLink {
  /** The name of the other node. */
  readonly node: string
  readonly #parts: LinkParts
  readonly #listener: PeerLinkListener
  readonly #link: Link
  readonly #lease = new LeaseMemory(undefined, machineClock, () => this.#leaseRefusal())
  readonly #calls: Calls<object, NodeCalls>
  /** The current threads, by their shards. */
  readonly #threads = new Map<number, PeerThread>()
  /** These threads, and replaced ones whose notices are still being processed. */
  readonly #active = new Set<PeerThread>()
  readonly #pings: NodeJS.Timeout
  /** The number of this front at the other node. */
  #front: number | undefined
  #pongAtMs = machineClock()
  #readOnly = false
  #isOver = false

  /** @throws Error if the other node cannot be reached */
  static async connect(peer: PeerAddress, parts: LinkParts, listener: PeerLinkListener): Promise<PeerLink> {
    const { host, port } = peer
    const sockets = await connectLink({ host, port, key: Buffer.from(parts.own.key) })
    return new PeerLink({ ...parts, peer, sockets }, listener)
  }

  private constructor(
    parts: LinkParts & { peer: PeerAddress; sockets: LinkSockets },
    listener: PeerLinkListener,
  ) {
    this.node = parts.peer.node
    this.#parts = parts
    this.#listener = listener
    this.#link = new Link(parts.sockets, {
      message: (message) => this.#message(message),
      closed: (reason) => this.#closed(reason),
    })
    this.#calls = new Calls((message) => this.#send({ kind: 'call', message }), {})
    const [from, to] = [nodeIdOf(parts.own), nodeIdOf(parts.peer)]
    this.#sendUrgent({ kind: 'hello', version: build, from, to })
    this.#pings = setInterval(() => this.#ping(), limits.linkPingMs)
  }

  /** Whether the link is open. */
  get isOpen(): boolean {
    return !this.#isOver
  }

  /** Whether the other node has accepted the link and permits this one to answer. */
  get isUp(): boolean {
    return this.#front !== undefined && this.#lease.holds()
  }

  /** Whether the other node serves a shard over this link. */
  serves(shard: number): boolean {
    const thread = this.#threads.get(shard)
    return thread !== undefined && thread.link.isAt(thread) && thread.link.serving
  }

  /** Calls the main thread of the other node. */
  readonly call: Calls<object, NodeCalls>['call'] = async (name, request) => {
    if (this.#isOver) throw new RefusedError(noLink)
    return this.#calls.call(name, request)
  }

  close(reason: string): void {
    this.#link.close(reason)
  }

  /** Closes the link after this front has stopped answering. */
  end(): void {
    clearInterval(this.#pings)
    this.#send({ kind: 'ends' })
    this.#link.finish()
  }

  #send(message: ToOwner): void {
    this.#link.send(message)
  }

  #sendUrgent(message: ToOwner): void {
    this.#link.sendUrgent(message)
  }

  #ping(): void {
    const nowMs = machineClock()
    this.#link.look(nowMs)
    if (nowMs - this.#pongAtMs > limits.linkTimeoutMs) this.close('the peer sent nothing for too long')
    else this.#sendUrgent({ kind: 'ping', atMs: nowMs })
  }

  #message(message: LinkMessage): void {
    if (message.kind === 'value') {
      if (isToFront(message.value)) this.#handle(message.value)
      else this.close('the peer sent an unknown message')
      return
    }
    const thread = message.kind === 'frame' ? this.#threads.get(message.shard) : this.#threadOf(message)
    thread?.link.receive(thread, message.frame)
  }

  #handle(message: ToFront): void {
    switch (message.kind) {
      case 'welcome':
        this.#front = message.front
        this.#listener.up()
        return
      case 'refused':
        if (message.isElsewhere) this.#listener.elsewhere()
        this.close(message.reason)
        return
      case 'pong':
        this.#pongAtMs = machineClock()
        this.#lease.extend(message.atMs + message.forMs)
        this.#readOnly = message.readOnly
        return
      case 'joined':
        this.#join(message).catch((error: unknown) => this.close(String(error)))
        return
      case 'left': {
        // Its last notices are still processed, as those of all fronts are.
        const thread = this.#threadOf(message)
        thread?.link.end(thread)
        return
      }
      case 'leaving':
        this.#leaving(message)
        return
      case 'stops':
        this.#listener.stops()
        return
      case 'offered':
        this.#parts.offered?.(message.shard)
        return
      case 'allAcknowledged':
        this.#threadOf(message)?.memory.allAcknowledged(message.noticeNo)
        return
      case 'call':
        this.#calls.receive(message.message)
    }
  }

  #threadOf({ shard, term }: ThreadId): PeerThread | undefined {
    for (const thread of this.#active) if (thread.shard === shard && thread.term === term) return thread
    return undefined
  }

  async #join({ shard, term }: ThreadId): Promise<void> {
    const link = this.#parts.links[shard]
    assert(this.#front !== undefined && link !== undefined, 'a front is welcome before a shard is joined')
    const channel: PeerChannel = {
      send: (message) => this.#sendUrgent(message),
      forget: () => this.#active.delete(thread),
    }
    const isReadOnly = () => this.#readOnly
    const thread: PeerThread = {
      get isReadOnly() {
        return isReadOnly()
      },
      shard,
      term,
      front: this.#front,
      lease: this.#lease,
      memory: new PeerMemory({ shard, term }, channel),
      link,
      post: (frame) => this.#link.sendFrame(shard, frame),
    }
    const before = this.#threads.get(shard)
    if (before !== undefined) link.end(before)
    this.#threads.set(shard, thread)
    this.#active.add(thread)
    // Without the state of the shard this front admits no request.
    await link.join(thread, (reason) => this.close(reason))
  }

  /** Stops sending to a thread, and stops admitting requests by what it has published. */
  #leaving({ shard, term }: ThreadId): void {
    const thread = this.#threadOf({ shard, term })
    thread?.link.leaving(thread)
    this.#send({ kind: 'released', shard, term })
  }

  /** Why answers of the other node must not be sent. */
  #leaseRefusal(): Refusal {
    const isConnected = machineClock() - this.#pongAtMs < limits.linkLeaseMs
    return isConnected ? ownerCutOff : slowLink
  }

  #closed(reason: string): void {
    this.#isOver = true
    clearInterval(this.#pings)
    this.#calls.end(new RefusedError(noLink))
    for (const thread of this.#active) thread.link.abandon(thread)
    this.#listener.ended(reason)
  }
}

function nodeIdOf({ node, incarnation }: NodeId): NodeId {
  return { node, incarnation }
}

/** Identifies a thread of the other node. */
interface ThreadId {
  readonly shard: number
  readonly term: number
}

/** A thread of the other node, as this front uses it. */
interface PeerThread extends ShardConnection, ThreadId {
  /** This front's end of the shard. */
  link: ShardLink
  memory: PeerMemory
}

/** Sends the progress of a thread's notices to the other node. */
interface PeerChannel {
  send(message: ToOwner): void
  /** Called when nothing of the thread is used any more. */
  forget(): void
}

/** The number that represents all fronts of the other node. */
const OTHERS = 0

/**
 * The progress of this front and of the other node's fronts with the notices of a shard, synchronized by
 * messages.
 */
class PeerMemory extends ShardMemory {
  readonly #thread: ThreadId
  readonly #channel: PeerChannel
  #allAcknowledged: number | undefined

  constructor(thread: ThreadId, channel: PeerChannel) {
    super()
    this.#thread = thread
    this.#channel = channel
    // No answer is released before the other node has reported the progress of all fronts.
    super.startCatchUp(OTHERS)
  }

  override startServing(front: number, noticeNo: number): void {
    super.startServing(front, noticeNo)
    this.#channel.send({ kind: 'serves', ...this.#thread, noticeNo: noticeNo })
  }

  override acknowledge(front: number, noticeNo: number): void {
    super.acknowledge(front, noticeNo)
    this.#channel.send({ kind: 'acknowledged', ...this.#thread, noticeNo: noticeNo })
  }

  override remove(front: number): void {
    super.remove(front)
    this.#channel.send({ kind: 'leaves', ...this.#thread })
    this.#channel.forget()
  }

  /** Reports may arrive in another order than the frames. */
  allAcknowledged(noticeNo: number): void {
    if (this.#allAcknowledged !== undefined && ((noticeNo - this.#allAcknowledged) | 0) < 0) return
    this.#allAcknowledged = noticeNo
    super.startServing(OTHERS, noticeNo)
  }
}
