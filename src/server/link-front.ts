import { limits } from '../base/limits.js'
import { refuse, RefusedError } from '../base/errors.js'
import type { Logger } from '../base/log.js'
import { machineClock } from '../base/machine-clock.js'
import { version } from '../base/version.js'
import { Calls } from '../dispatch/calls.js'
import type { LinkMessage } from '../outbound/link/framing.js'
import { Link, connectLink } from '../outbound/link/link.js'
import { LeaseMemory } from '../protocol/lease-memory.js'
import { isToFront, type ToFront, type ToOwner } from '../protocol/link-messages.js'
import { ShardMemory } from '../protocol/shard-memory.js'
import type { FrontCalls, FrontGiven, MainCalls } from './front-messages.js'
import { type Front, type FrontEnd, type FrontOwn, join, makeFront } from './front.js'

/** What a node that stands by is a front with. */
export interface LinkFrontParts {
  /** The same as a front of this process is given, but for what the owner of the shards says. */
  given: Omit<FrontGiven, 'kind' | 'front' | 'hasServerLog' | 'lease'>
  /** What this node does itself. */
  own: Pick<FrontOwn, 'readers' | 'services'>
  node: string
  incarnation: number
  key: Buffer
  log: Logger
}

/** What becomes of a link. */
export interface LinkFrontListener {
  /** Every shard serves: requests can be taken. */
  serves(front: Front): void
  /** It ended. */
  ended(reason: string): void
}

const noLink = refuse('unavailable', 'The link to the node that serves has ended, try again', {
  retryAfterSecs: 1,
})

/** A node that stands by, as a front of the shards of the node that owns them (docs/adr/0047-links.md). */
export class LinkFront {
  readonly #parts: LinkFrontParts
  readonly #listener: LinkFrontListener
  readonly #link: Link
  readonly #lease = new LeaseMemory()
  readonly #calls: Calls<FrontCalls, MainCalls>
  readonly #ends = new Map<number, LinkedEnd>()
  readonly #pings: NodeJS.Timeout
  #front: Promise<Front> | undefined
  #made: Front | undefined
  #pongAtMs = machineClock()
  readonly #serving = new Set<number>()
  #isServing = false
  #isOver = false

  /** @throws Error when the owner cannot be reached */
  static async connect(
    { host, port }: { host: string; port: number },
    parts: LinkFrontParts,
    listener: LinkFrontListener,
  ): Promise<LinkFront> {
    const socket = await connectLink({ host, port, key: parts.key })
    return new LinkFront((events) => new Link(socket, events), parts, listener)
  }

  private constructor(
    open: (events: ConstructorParameters<typeof Link>[1]) => Link,
    parts: LinkFrontParts,
    listener: LinkFrontListener,
  ) {
    this.#parts = parts
    this.#listener = listener
    this.#link = open({
      message: (message) => this.#message(message),
      closed: (reason) => this.#closed(reason),
    })
    this.#calls = new Calls((message) => this.#say({ kind: 'call', message }), this.#handlers())
    this.#say({ kind: 'hello', version, node: parts.node, incarnation: parts.incarnation })
    this.#pings = setInterval(() => this.#ping(), limits.linkPingMs)
  }

  close(reason: string): void {
    this.#link.close(reason)
  }

  #say(message: ToOwner): void {
    this.#link.send(message)
  }

  #ping(): void {
    const nowMs = machineClock()
    if (nowMs - this.#pongAtMs > limits.linkSilenceMs) this.close('the other node is silent')
    else this.#say({ kind: 'ping', atMs: nowMs })
  }

  #message(message: LinkMessage): void {
    if (message.kind === 'frame') this.#ends.get(message.shard)?.take(message.frame)
    else if (isToFront(message.value)) this.#said(message.value)
    else this.close('the other node said what is no message')
  }

  #said(said: ToFront): void {
    switch (said.kind) {
      case 'welcome':
        this.#welcome(said.front, said.hasServerLog)
        return
      case 'refused':
        this.close(said.reason)
        return
      case 'pong':
        this.#pongAtMs = machineClock()
        this.#lease.extend(said.atMs + said.forMs)
        if (this.#made !== undefined) this.#made.standing.readOnly = said.readOnly
        this.#tellServes()
        return
      case 'joined':
        this.#join(said.shard).catch((error: unknown) => this.close(String(error)))
        return
      case 'left':
        // What it has told last is passed on yet, as the others take it.
        this.#ends.get(said.shard)?.end()
        return
      case 'allTaken':
        this.#ends.get(said.shard)?.memory.allTaken(said.told)
        return
      case 'stopping':
        if (this.#made !== undefined) this.#made.standing.waiting = () => noLink
        this.#made?.parts.streams.close()
        return
      case 'call':
        this.#calls.take(said.message)
    }
  }

  #welcome(front: number, hasServerLog: boolean): void {
    const { given, own, log } = this.#parts
    const all: FrontGiven = { ...given, kind: 'front', front, hasServerLog, lease: this.#lease.memory }
    const call: Calls<FrontCalls, MainCalls>['call'] = async (name, ask) => {
      if (this.#isOver) throw new RefusedError(noLink)
      return this.#calls.call(name, ask)
    }
    this.#front = makeFront(all, { calls: { call }, log, ...own })
    this.#front.then(
      (made) => {
        this.#made = made
        this.#say({ kind: 'made' })
      },
      (error: unknown) => this.close(String(error)),
    )
  }

  async #join(shard: number): Promise<void> {
    const front = this.#made
    if (front === undefined) throw new Error('The other node has a shard joined before the front is made')
    const end = new LinkedEnd(shard, { link: this.#link, say: (message) => this.#say(message) })
    this.#ends.set(shard, end)
    // What the thread before has told is known to all by now, or learnt from the new one.
    front.links[shard]?.link.cut()
    await join(front, shard, end)
    if (this.#isOver || end.isClosed) return
    // A thread that is new watches no agents yet.
    if (this.#serving.has(shard)) front.listener.restarted(shard)
    this.#serving.add(shard)
    this.#tellServes()
  }

  /** Once every shard serves, and this node may answer. */
  #tellServes(): void {
    const front = this.#made
    if (this.#isServing || front === undefined || !this.#lease.holds()) return
    if (this.#serving.size < this.#parts.given.shards) return
    this.#isServing = true
    front.keys.keepUp()
    this.#listener.serves(front)
  }

  #closed(reason: string): void {
    this.#isOver = true
    clearInterval(this.#pings)
    this.#calls.end(new RefusedError(noLink))
    for (const end of this.#ends.values()) end.end()
    if (this.#made !== undefined) void closeFront(this.#made)
    // One that is being made ends when it is.
    else this.#front?.then(closeFront, () => undefined)
    this.#listener.ended(reason)
  }

  #handlers(): ConstructorParameters<typeof Calls<FrontCalls, MainCalls>>[1] {
    const made = async (): Promise<Front> => {
      const front = await this.#front
      if (front === undefined) throw new Error('The owner of the shards calls before it said welcome')
      return front
    }
    const never = { handle: () => Promise.reject(new Error('A node is not called so')) }
    return {
      join: never,
      listen: never,
      drain: never,
      close: never,
      look: { handle: async (attempt) => (await made()).gate.look(attempt) },
      verify: { handle: async (attempt) => (await made()).gate.verify(attempt) },
      figures: never,
      lastUses: { handle: async (keyIds) => (await made()).parts.apiKeys.lastUses(keyIds) },
    }
  }
}

/** What it has not told of last uses is lost with the link. */
async function closeFront({ links, parts, keys }: Front): Promise<void> {
  for (const { link } of links) link.cut()
  parts.streams.close()
  parts.uploads.close()
  await keys.stop()
}

/** The way to a shard of the other node. */
class LinkedEnd implements FrontEnd {
  readonly memory: LinkedMemory
  readonly #shard: number
  readonly #link: Link
  #take: ((frame: ArrayBuffer) => void) | undefined
  #closed: (() => void) | undefined
  /** Frames that came before anybody listened. */
  readonly #early: ArrayBuffer[] = []
  isClosed = false

  constructor(shard: number, { link, say }: { link: Link; say(message: ToOwner): void }) {
    this.#shard = shard
    this.#link = link
    this.memory = new LinkedMemory(shard, say)
  }

  post(frame: ArrayBuffer): void {
    this.#link.sendFrame(this.#shard, frame)
  }

  take(frame: ArrayBuffer): void {
    if (this.#take === undefined) this.#early.push(frame)
    else this.#take(frame)
  }

  listen(take: (frame: ArrayBuffer) => void, closed: () => void): void {
    this.#take = take
    this.#closed = closed
    for (const frame of this.#early.splice(0)) take(frame)
    if (this.isClosed) closed()
  }

  /** No frame comes any more. */
  end(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#closed?.()
  }

  close(): void {}
}

/** The front that stands for all those of the other node. */
const OTHERS = 0

/** What a front of this node and those of the other one have taken of a shard, of which messages tell. */
class LinkedMemory extends ShardMemory {
  readonly #shard: number
  readonly #say: (message: ToOwner) => void
  #allTaken: number | undefined

  constructor(shard: number, say: (message: ToOwner) => void) {
    super()
    this.#shard = shard
    this.#say = say
    // Nobody is answered before the other node has said how far all are.
    super.learns(OTHERS)
  }

  override serves(front: number, told: number): void {
    super.serves(front, told)
    this.#say({ kind: 'serves', shard: this.#shard, told })
  }

  override hasTaken(front: number, told: number): void {
    super.hasTaken(front, told)
    this.#say({ kind: 'taken', shard: this.#shard, told })
  }

  /** They may come in another order than the frames. */
  allTaken(told: number): void {
    if (this.#allTaken !== undefined && ((told - this.#allTaken) | 0) < 0) return
    this.#allTaken = told
    super.serves(OTHERS, told)
  }
}
