import { assert } from '../../base/assert.js'
import { refuse, type Refusal, RefusedError } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { machineClock } from '../../base/machine-clock.js'
import { version } from '../../base/version.js'
import { Calls } from '../../dispatch/calls.js'
import { type FrontEnd, type FrontLink, join } from '../../dispatch/links/front-link.js'
import type { FrontListener } from '../../dispatch/threads/shard-threads.js'
import type { LinkMessage } from './framing.js'
import { Link } from './link.js'
import { connectLink, type LinkSockets } from './sockets.js'
import { LeaseMemory } from '../../protocol/lease-memory.js'
import { isToFront, type NodeId, type ToFront, type ToOwner } from '../../protocol/link-messages.js'
import { ShardMemory } from '../../protocol/shard-memory.js'
import type { MainCalls, PeerCalls, PeerPlace, PeersTold } from '../../server/calls/front-messages.js'
import { RemoteGate } from '../../server/calls/front-services.js'

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
  links: readonly FrontLink[]
  listener: Pick<FrontListener, 'learn' | 'restarted'>
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
  /** The ways to the threads that are there, by their shards. */
  readonly #ends = new Map<number, LinkedEnd>()
  /** Those, and the ones by which something is passed on yet. */
  readonly #known = new Set<LinkedEnd>()
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
      look: { handle: (attempt) => this.gate.look(attempt) },
      verify: { handle: (attempt) => this.gate.verify(attempt) },
    })
    this.gate = new RemoteGate(this)
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
    const [end, link] = [this.#ends.get(shard), this.#parts.links[shard]]
    return end !== undefined && link?.isAt(end) === true && link.serving
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
    if (message.kind === 'frame') this.#ends.get(message.shard)?.take(message.frame)
    else if (message.kind === 'late') this.#endOf(message)?.take(message.frame)
    else if (isToFront(message.value)) this.#said(message.value)
    else this.close('the other node said what is no message')
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
      case 'left':
        // What it has told last is passed on yet, as the others take it.
        this.#endOf(said)?.end()
        return
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
        this.#endOf(said)?.memory.allTaken(said.told)
        return
      case 'call':
        this.#calls.take(said.message)
    }
  }

  #endOf({ shard, term }: { shard: number; term: number }): LinkedEnd | undefined {
    for (const end of this.#known) if (end.shard === shard && end.term === term) return end
    return undefined
  }

  async #join({ shard, term }: { shard: number; term: number }): Promise<void> {
    const { links, listener } = this.#parts
    const link = links[shard]
    assert(this.#front !== undefined && link !== undefined, 'a front is welcome before a shard is joined')
    const about = { shard, term, front: this.#front, lease: this.#lease }
    const end: LinkedEnd = new LinkedEnd(about, {
      link: this.#link,
      say: (message) => this.#sayUrgent(message),
      left: () => this.#known.delete(end),
    })
    this.#ends.get(shard)?.end()
    this.#ends.set(shard, end)
    this.#known.add(end)
    const serves = await join(link, end, {
      learn: (ask) => listener.learn(shard, ask),
      // Without it this front admits nobody.
      failed: (reason) => this.close(reason),
    })
    // A thread that is new watches no agents yet.
    if (serves) listener.restarted(shard)
  }

  /** Nothing more is sent, and nobody is let in by what it has told. */
  #leaving({ shard, term }: { shard: number; term: number }): void {
    const end = this.#endOf({ shard, term })
    if (end !== undefined) this.#parts.links[shard]?.leaving(end)
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
    for (const end of this.#known) {
      end.end()
      this.#parts.links[end.shard]?.abandon(end)
    }
    this.#listener.ended(reason)
  }
}

function nodeIdOf({ node, incarnation }: NodeId): NodeId {
  return { node, incarnation }
}

/** The thread of a shard of the other node. */
interface LinkedThread {
  shard: number
  term: number
  /** The number of this front there. */
  front: number
  lease: LeaseMemory
}

/** How it is talked to. */
interface LinkedWay {
  link: Link
  say(message: ToOwner): void
  /** Nothing more is kept of what it has told. */
  left(): void
}

/** The way to a shard of the other node. */
class LinkedEnd implements FrontEnd {
  readonly shard: number
  readonly front: number
  readonly term: number
  readonly lease: LeaseMemory
  readonly memory: LinkedMemory
  isLeaving = false
  readonly #link: Link
  #take: ((frame: ArrayBuffer) => void) | undefined
  #closed: (() => void) | undefined
  /** Frames that came before anybody listened. */
  readonly #early: ArrayBuffer[] = []
  #isClosed = false

  constructor(thread: LinkedThread, way: LinkedWay) {
    this.shard = thread.shard
    this.#link = way.link
    this.front = thread.front
    this.term = thread.term
    this.lease = thread.lease
    this.memory = new LinkedMemory(thread, way)
  }

  post(frame: ArrayBuffer): void {
    this.#link.sendFrame(this.shard, frame)
  }

  take(frame: ArrayBuffer): void {
    if (this.#isClosed) return
    if (this.#take === undefined) this.#early.push(frame)
    else this.#take(frame)
  }

  listen(take: (frame: ArrayBuffer) => void, closed: () => void): void {
    this.#take = take
    this.#closed = closed
    for (const frame of this.#early.splice(0)) take(frame)
    if (this.#isClosed) closed()
  }

  /** No frame comes any more. */
  end(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#closed?.()
  }

  close(): void {
    this.end()
  }
}

/** The front that stands for all those of the other node. */
const OTHERS = 0

/** What a front of this node and those of the other one have taken of a shard, of which messages tell. */
class LinkedMemory extends ShardMemory {
  readonly #thread: Pick<LinkedThread, 'shard' | 'term'>
  readonly #way: LinkedWay
  #allTaken: number | undefined

  constructor({ shard, term }: LinkedThread, way: LinkedWay) {
    super()
    this.#thread = { shard, term }
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
