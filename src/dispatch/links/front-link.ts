import { steadyClock } from '../../base/clock.js'
import type { Refusal } from '../../base/errors.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Command, Outcome } from '../../protocol/messages.js'
import { ShardLink, type LinkListener, type Receive, type ShardEnd } from './shard-link.js'

/** A thread of a shard as a front reaches it: in this process, or by a link in another node. */
export interface FrontEnd extends ShardEnd {
  /** A later thread of the shard has a higher one, whichever node it is of. */
  term: number
  /** Until when what it answers may be told; absent for a server of its own. */
  lease: LeaseMemory | undefined
  /** Whether it is about to end, for another node to have the shard. */
  isLeaving: boolean
  /** @param closed called after the last frame of the thread */
  listen(take: (frame: ArrayBuffer) => void, closed: () => void): void
  /** Nothing more is taken from it. */
  close(): void
}

/** What a front link tells of, besides what its shard sends. */
export interface FrontLinkListener extends LinkListener {
  /** The thread has ended, and what it had told is passed on. */
  ended(): void
}

/** A front's end of one shard, by whichever thread serves it. */
export class FrontLink {
  readonly #link: ShardLink
  readonly #listener: FrontLinkListener
  #end: FrontEnd | undefined
  /** The one that came last, which it may not talk to yet. */
  #next: FrontEnd | undefined
  /** The one by which it has talked last. */
  #last: FrontEnd | undefined
  /** Resolves when what the last thread had told is passed on. */
  #ended: Promise<void> = Promise.resolve()
  #term = -1
  #lease: LeaseMemory | undefined
  #awaySinceMs = -Infinity

  /** @param waits whether commands wait for a while where there is no thread, as another node may have one soon */
  constructor(listener: FrontLinkListener, waits: boolean) {
    this.#link = new ShardLink(listener, waits)
    this.#listener = listener
  }

  get serving(): boolean {
    return this.#link.serving
  }

  /** Since when it has not served, by the steady clock. */
  get awaySinceMs(): number {
    return this.#awaySinceMs
  }

  /** Resolves when what the last thread had told is passed on. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Of the thread that it talks to, or did last: what that has answered is passed on yet. */
  get lease(): LeaseMemory | undefined {
    return this.#lease
  }

  /** Commands that wait for their outcome. */
  get depth(): number {
    return this.#link.depth
  }

  /** Whether an end is the one by which it talks to the shard. */
  isAt(end: FrontEnd): boolean {
    return this.#end === end
  }

  /**
   * Talks to a thread of the shard, once what the last one told is passed on.
   * @returns whether it does: not where the thread is older than one that it has talked to, or has ended meanwhile
   */
  async attach(end: FrontEnd): Promise<boolean> {
    if (end.term < this.#term) return drop(end)
    this.#term = end.term
    this.#next = end
    // One that has not ended by itself is of a node that is gone, and does not know.
    if (this.#end !== undefined) this.abandon(this.#end)
    await this.#ended
    if (this.#next !== end) return drop(end)
    this.#end = end
    this.#last = end
    this.#lease = end.lease
    this.#link.begin(end)
    if (end.isLeaving) this.#link.leaving()
    this.#ended = new Promise((resolve) => {
      let isOver = false
      const closed = () => {
        if (isOver) return
        isOver = true
        this.#isAway()
        if (this.#end === end) this.#end = undefined
        this.#link.end(() => {
          this.#listener.ended()
          resolve()
        })
      }
      end.listen((frame) => this.#link.receive(frame), closed)
    })
    return this.#end === end
  }

  /** The front knows what it must know: the thread serves it, unless another one has come meanwhile. */
  serve(end: FrontEnd): boolean {
    if (this.#end !== end) return false
    this.#link.serve()
    return this.#link.serving
  }

  /** The thread that came last is about to end: what was sent is answered yet, and nothing more is sent. */
  leaving(end = this.#next): void {
    if (end === undefined) return
    end.isLeaving = true
    if (this.#end !== end) return
    this.#isAway()
    this.#link.leaving()
  }

  /** Nobody says any more how far others have taken what an end told: what waits for that is lost. */
  abandon(end: FrontEnd): void {
    if (this.#last !== end) return
    end.close()
    this.#link.cut()
  }

  /** The front ends: nobody waits for it any more. */
  leave(): void {
    this.#link.leave()
    this.#end?.close()
  }

  send(command: Command, receive: Receive): Refusal | undefined {
    return this.#link.send(command, receive)
  }

  learn(command: Command): Promise<Outcome> {
    return this.#link.learn(command)
  }

  flush(): void {
    this.#link.flush()
  }

  #isAway(): void {
    if (this.serving) this.#awaySinceMs = steadyClock()
  }
}

/** Never talks to a thread: nobody need wait for that. */
function drop(end: FrontEnd): false {
  end.memory.leaves(end.front)
  end.close()
  return false
}

/** What a front does with a thread that it begins to talk to. */
export interface Joining {
  /** Asks it for what the notices of its predecessor may not have said. */
  learn(ask: (command: Command) => Promise<Outcome>): Promise<void>
  /** It did not say what it must, and is there. */
  failed(reason: string): void
}

/**
 * Has a front talk to a thread of a shard, and be served by it once it knows what the last one may not have told.
 * @returns whether it is; if the thread ends meanwhile, another one comes, and this begins again
 */
export async function join(link: FrontLink, end: FrontEnd, { learn, failed }: Joining): Promise<boolean> {
  if (!(await link.attach(end))) return false
  try {
    await learn((command) => link.learn(command))
  } catch (error) {
    if (link.isAt(end)) failed(`what it told is not known (${String(error)})`)
    return false
  }
  return link.serve(end)
}
