import { assert } from '../../base/assert.js'
import { refuse, type Refusal, RefusedError } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { machineClock } from '../../base/clock.js'
import { version } from '../../base/version.js'
import { Calls } from '../../dispatch/calls.js'
import { RemoteGate } from '../../dispatch/duties/remote-gate.js'
import type { ShardConnection } from '../../dispatch/links/shard-connection.js'
import type { ShardLink } from '../../dispatch/links/shard-link.js'
import type { LinkMessage } from './framing.js'
import { Link } from './link.js'
import { connectLink, type LinkSockets } from './sockets.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { isToFront, type NodeId, type ToFront, type ToOwner } from '../../protocol/link-messages.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import type { MainCalls, PeerCalls, PeerPlace, PeersTold } from '../../server/calls/front-messages.js'

/** What becomes of a link. */
interface PeerLinkListener {
  /** The other node has taken it. */
  up(): void
  /** The other node is about to give all its shards up. */
  stops(): void
  /** It ended. */
  ended(reason: string): void
}

const noLink = refuse('unavailable', 'The link to the node that serves has ended, try again', {
  retryAfterSecs: 1,
})

const slowLink = refuse(
  'unavailable',
  'The link to the node that owns the shard of this agent is slow or cut off, try again',
  { retryAfterSecs: 1 },
)
const ownerCutOff = refuse(
  'unavailable',
  'The node that owns the shard of this agent cannot reach the database of its cluster, try again',
  { retryAfterSecs: 1 },
)

/** What a link needs. */
export interface LinkParts {
  own: PeersTold['own']
  /** The front's ends of all shards. */
  links: readonly ShardLink[]
  /** The other node wants this one to have a shard that it has given up. */
  offered?(shard: number): void
}

/** A front of this node at the shards of one other node. */
export class PeerLink {
  readonly #parts: LinkParts
  readonly #listener: PeerLinkListener
  readonly #link: Link
  readonly #lease = new LeaseMemory(undefined, machineClock, () => this.#whyNoLease())
  readonly #calls: Calls<PeerCalls, MainCalls>
  readonly gate: RemoteGate
  /** The threads that are there, by their shards. */
  readonly #threads = new Map<number, PeerThread>()
  /** Those, and the ones of which something is passed on yet. */
  readonly #known = new Set<PeerThread>()
  readonly #pings: NodeJS.Timeout
  /** The number of this front there. */
  #front: number | undefined
  #pongAtMs = machineClock()
  #readOnly = false
  #isOver = false

  /** @throws Error when the other node cannot be reached */
  static async connect(place: PeerPlace, parts: LinkParts, listener: PeerLinkListener): Promise<PeerLink> {
    const { host, port } = place
    const sockets = await connectLink({ host, port, key: Buffer.from(parts.own.key) })
    return new PeerLink({ ...parts, place, sockets }, listener)
  }

  private constructor(
    parts: LinkParts & { place: PeerPlace; sockets: LinkSockets },
    listener: PeerLinkListener,
  ) {
    this.#parts = parts
    this.#listener = listener
    this.#link = new Link(parts.sockets, {
      message: (message) => this.#message(message),
      closed: (reason) => this.#closed(reason),
    })
    this.#calls = new Calls((message) => this.#say({ kind: 'call', message }), {
      look: (attempt) => this.gate.look(attempt),
      verify: (attempt) => this.gate.verify(attempt),
    })
    this.gate = new RemoteGate((login) => this.call('login', login))
    const [from, to] = [nodeIdOf(parts.own), nodeIdOf(parts.place)]
    this.#sayUrgent({ kind: 'hello', version, from, to })
    this.#pings = setInterval(() => this.#ping(), limits.linkPingMs)
  }

  /** Whether it goes on. */
  get isOpen(): boolean {
    return !this.#isOver
  }

  /** Whether the other node has taken it, and says that this one may answer. */
  get isUp(): boolean {
    return this.#front !== undefined && this.#lease.holds()
  }

  get readOnly(): boolean {
    return this.#readOnly
  }

  /** Whether a shard is served by it. */
  serves(shard: number): boolean {
    const thread = this.#threads.get(shard)
    return thread !== undefined && thread.link.isAt(thread) && thread.link.serving
  }

  /** Asks the main thread of the other node. */
  readonly call: Calls<PeerCalls, MainCalls>['call'] = async (name, ask) => {
    if (this.#isOver) throw new RefusedError(noLink)
    return this.#calls.call(name, ask)
  }

  close(reason: string): void {
    this.#link.close(reason)
  }

  /** This front answers nobody any more. */
  end(): void {
    clearInterval(this.#pings)
    this.#say({ kind: 'ends' })
    this.#link.finish()
  }

  #say(message: ToOwner): void {
    this.#link.send(message)
  }

  #sayUrgent(message: ToOwner): void {
    this.#link.sendUrgent(message)
  }

  #ping(): void {
    const nowMs = machineClock()
    this.#link.look(nowMs)
    if (nowMs - this.#pongAtMs > limits.linkSilenceMs) this.close('the other node is silent')
    else this.#sayUrgent({ kind: 'ping', atMs: nowMs })
  }

  #message(message: LinkMessage): void {
    if (message.kind === 'value') {
      if (isToFront(message.value)) this.#said(message.value)
      else this.close('the peer sent an unknown message')
      return
    }
    const thread = message.kind === 'frame' ? this.#threads.get(message.shard) : this.#threadOf(message)
    thread?.link.receive(thread, message.frame)
  }

  #said(said: ToFront): void {
    switch (said.kind) {
      case 'welcome':
        this.#front = said.front
        this.#listener.up()
        return
      case 'refused':
        this.close(said.reason)
        return
      case 'pong':
        this.#pongAtMs = machineClock()
        this.#lease.extend(said.atMs + said.forMs)
        this.#readOnly = said.readOnly
        return
      case 'joined':
        this.#join(said).catch((error: unknown) => this.close(String(error)))
        return
      case 'left': {
        // What it has told last is passed on yet, as the others take it.
        const thread = this.#threadOf(said)
        thread?.link.end(thread)
        return
      }
      case 'leaving':
        this.#leaving(said)
        return
      case 'stops':
        this.#listener.stops()
        return
      case 'offered':
        this.#parts.offered?.(said.shard)
        return
      case 'allTaken':
        this.#threadOf(said)?.memory.allTaken(said.told)
        return
      case 'call':
        this.#calls.take(said.message)
    }
  }

  #threadOf({ shard, term }: ThreadId): PeerThread | undefined {
    for (const thread of this.#known) if (thread.shard === shard && thread.term === term) return thread
    return undefined
  }

  async #join({ shard, term }: ThreadId): Promise<void> {
    const link = this.#parts.links[shard]
    assert(this.#front !== undefined && link !== undefined, 'a front is welcome before a shard is joined')
    const way: PeerWay = {
      say: (message) => this.#sayUrgent(message),
      left: () => this.#known.delete(thread),
    }
    const thread: PeerThread = {
      shard,
      term,
      front: this.#front,
      lease: this.#lease,
      memory: new PeerMemory({ shard, term }, way),
      link,
      post: (frame) => this.#link.sendFrame(shard, frame),
    }
    const before = this.#threads.get(shard)
    if (before !== undefined) link.end(before)
    this.#threads.set(shard, thread)
    this.#known.add(thread)
    // Without what it must know this front admits nobody.
    await link.join(thread, (reason) => this.close(reason))
  }

  /** Nothing more is sent, and no request is admitted by what it has told. */
  #leaving({ shard, term }: ThreadId): void {
    const thread = this.#threadOf({ shard, term })
    thread?.link.leaving(thread)
    this.#say({ kind: 'released', shard, term })
  }

  /** Why nothing may be answered that the other node has decided. */
  #whyNoLease(): Refusal {
    const isHeard = machineClock() - this.#pongAtMs < limits.linkLeaseMs
    return isHeard ? ownerCutOff : slowLink
  }

  #closed(reason: string): void {
    this.#isOver = true
    clearInterval(this.#pings)
    this.#calls.end(new RefusedError(noLink))
    for (const thread of this.#known) thread.link.abandon(thread)
    this.#listener.ended(reason)
  }
}

function nodeIdOf({ node, incarnation }: NodeId): NodeId {
  return { node, incarnation }
}

/** A thread of the other node, among those of all shards and times. */
interface ThreadId {
  readonly shard: number
  readonly term: number
}

/** A thread of the other node, as this front talks to it. */
interface PeerThread extends ShardConnection, ThreadId {
  /** This front's end of the shard. */
  link: ShardLink
  memory: PeerMemory
}

/** What messages tell of a thread. */
interface PeerWay {
  say(message: ToOwner): void
  /** Nothing more is kept of what it has told. */
  left(): void
}

/** The front that stands for all those of the other node. */
const OTHERS = 0

/** What a front of this node and those of the other one have taken of a shard, of which messages tell. */
class PeerMemory extends ShardMemory {
  readonly #thread: ThreadId
  readonly #way: PeerWay
  #allTaken: number | undefined

  constructor(thread: ThreadId, way: PeerWay) {
    super()
    this.#thread = thread
    this.#way = way
    // Nobody is answered before the other node has said how far all are.
    super.learns(OTHERS)
  }

  override serves(front: number, told: number): void {
    super.serves(front, told)
    this.#way.say({ kind: 'serves', ...this.#thread, told })
  }

  override hasTaken(front: number, told: number): void {
    super.hasTaken(front, told)
    this.#way.say({ kind: 'taken', ...this.#thread, told })
  }

  override leaves(front: number): void {
    super.leaves(front)
    this.#way.say({ kind: 'leaves', ...this.#thread })
    this.#way.left()
  }

  /** They may come in another order than the frames. */
  allTaken(told: number): void {
    if (this.#allTaken !== undefined && ((told - this.#allTaken) | 0) < 0) return
    this.#allTaken = told
    super.serves(OTHERS, told)
  }
}
