import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { assert } from '../../base/assert.js'
import { refuse } from '../../base/errors.js'
import { machineClock } from '../../base/clock.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { encodeLate } from './framing.js'
import type { Link } from './link.js'
import {
  countOf,
  encodeOutcomes,
  isLateFrame,
  toldOf,
  type FrontFrame,
  type LateFrame,
} from '../../protocol/frame.js'
import type { ToFront } from '../../protocol/link-messages.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'

/** What a relay is made of. */
interface RelayParts {
  shard: number
  front: number
  threads: Pick<ShardThreads, 'join'>
  link: Link
}

const full = refuse(
  'overloaded',
  'Too many answers to you wait for the link between two nodes of the cluster, try again with fewer requests at once',
  { retryAfterSecs: 1 },
)

/** Passes the frames of one shard on to the front in another node, and back. */
export class ShardRelay {
  readonly #parts: RelayParts
  /** The thread that it leads to. */
  readonly thread: { shard: number; term: number }
  readonly #port: MessagePort
  readonly #memory: ShardMemory
  /** Commands that are not answered: while there are any, nobody else may have the number of the front. */
  #underWay = 0
  #asked: number | undefined
  /** What was told with the last frame that was passed on, what of it the front has taken, and what all fronts have. */
  #passed = 0
  #taken = 0
  #allTaken = 0
  /** When one of these last changed. */
  #takenAtMs = machineClock()
  #isLeft = false
  /** Answers that others overtake, which wait for the link. */
  #late = 0
  #hasLink = true
  #hasLeft = false
  isClosed = false

  /** Resolves when the front sends nothing more, or cannot answer any more. */
  readonly released: Promise<void>
  /** That is so. */
  release: () => void = () => {}

  /** @returns undefined while the shard has no thread that fronts may join */
  static open(parts: RelayParts): ShardRelay | undefined {
    const { port1, port2 } = new MessageChannel()
    const joined = parts.threads.join(parts.shard, parts.front, port1)
    if (joined !== undefined) return new ShardRelay(parts, port2, joined)
    port1.close()
    return undefined
  }

  private constructor(
    parts: RelayParts,
    port: MessagePort,
    { memory, term }: { memory: ShardMemory; term: number },
  ) {
    this.#parts = parts
    this.thread = { shard: parts.shard, term }
    this.#port = port
    this.#memory = memory
    this.released = new Promise((resolve) => (this.release = resolve))
    port.on('message', (message: unknown) => {
      if (message instanceof ArrayBuffer) this.#underWay -= countOf(message)
      else {
        assert(isLateFrame(message), 'a shard sends frames')
        this.#underWay -= 1
      }
      if (!this.#hasLink) this.#closeWhenIdle()
      else if (message instanceof ArrayBuffer) this.#pass(message)
      else this.#passLate(message)
    })
    port.once('close', () => {
      this.isClosed = true
      this.release()
      this.#tellLeft()
    })
  }

  send(frame: ArrayBuffer): void {
    if (this.isClosed) return
    this.#underWay += countOf(frame)
    this.#port.postMessage(frame, [frame])
  }

  serves(told: number): void {
    this.#memory.serves(this.#parts.front, told)
    this.#tellWhenTaken(told)
  }

  taken(told: number): void {
    this.#taken = told
    this.#takenAtMs = machineClock()
    this.#memory.hasTaken(this.#parts.front, told)
  }

  /** For how long the front has not taken what it was told next, which it does once all have what came before, milliseconds. */
  waitsMs(nowMs: number): number {
    const isOver = this.isClosed || this.#isLeft || this.#passed === this.#taken
    return isOver || this.#taken !== this.#allTaken ? 0 : nowMs - this.#takenAtMs
  }

  /** Nobody need wait for it any more. */
  frontLeaves(): void {
    this.#isLeft = true
    this.#memory.leaves(this.#parts.front)
    this.release()
  }

  /** What comes now is for nobody. */
  linkEnded(): void {
    this.#hasLink = false
  }

  /** The other node cannot answer any more: nobody waits for it. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.release()
    this.#closeWhenIdle()
  }

  #pass(frame: ArrayBuffer): void {
    const told = toldOf(frame)
    if (this.#passed === this.#taken) this.#takenAtMs = machineClock()
    this.#passed = told
    this.#parts.link.sendFrame(this.#parts.shard, frame)
    if (told !== this.#asked) this.#tellWhenTaken(told)
  }

  #passLate({ id, caller, frame }: LateFrame): void {
    const { link, shard } = this.#parts
    this.#late += 1
    const sent = () => {
      this.#late -= 1
      if (this.isClosed) this.#tellLeft()
    }
    if (link.sendLate({ principal: caller, parts: encodeLate(this.thread, frame), sent })) return
    this.#late -= 1
    const outcomes: FrontFrame['outcomes'] = [[id, full]]
    const refused = encodeOutcomes({
      outcomes,
      events: [],
      notices: [],
      appended: false,
      told: toldOf(frame),
    })
    link.sendFrame(shard, refused)
  }

  /** Once all that it has answered is on its way. */
  #tellLeft(): void {
    if (this.#hasLink && this.#late === 0) this.#tell({ kind: 'left', ...this.thread })
  }

  #tell(message: ToFront): void {
    this.#parts.link.send(message)
  }

  #tellWhenTaken(told: number): void {
    this.#asked = told
    void this.#memory.untilTaken(told).then(() => {
      this.#allTaken = told
      this.#takenAtMs = machineClock()
      const allTaken: ToFront = { kind: 'allTaken', ...this.thread, told }
      if (this.#hasLink) this.#parts.link.sendUrgent(allTaken)
    })
  }

  #closeWhenIdle(): void {
    if (this.#hasLeft && this.#underWay === 0) this.#port.close()
  }
}
