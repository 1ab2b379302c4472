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
  isFrameNotice,
  noticeNoOf,
  type FrontFrame,
  type LateFrame,
} from '../../protocol/frame.js'
import type { ToFront } from '../../protocol/link-messages.js'
import type { ShardMemory } from '../../protocol/shard-memory.js'

interface RelayParts {
  shard: number
  front: number
  threads: Pick<ShardThreads, 'join'>
  link: Link
}

/** Refuses an answer to a principal for whom too much waits. */
export const linkFull = refuse(
  'overloaded',
  'Too many answers to you are queued for the link between two nodes of the cluster; try again with fewer concurrent requests',
  { retryAfterSecs: 1 },
)

/** Relays the frames of one shard to the front in another node, and back. */
export class ShardRelay {
  readonly #parts: RelayParts
  readonly thread: { shard: number; term: number }
  readonly #port: MessagePort
  readonly #memory: ShardMemory
  /** Commands without an answer; until there are none, the number of the front must not be reused. */
  #pending = 0
  #awaited: number | undefined
  /** Sequence numbers of notices: last relayed, last processed by the front, last processed by all fronts. */
  #passed = 0
  #taken = 0
  #allAcknowledged = 0
  /** When one of these last changed. */
  #takenAtMs = machineClock()
  #frontLeft = false
  /** Answers that others may overtake and that wait for the link. */
  #lateAnswers = 0
  #hasLink = true
  #hasLeft = false
  isClosed = false

  /** Resolves when the front sends nothing more, or cannot answer any more. */
  readonly released: Promise<void>
  /** Resolves `released`. */
  release: () => void = () => {}

  /** @returns undefined while the shard has no thread that fronts can join */
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
      const isFrame = message instanceof ArrayBuffer
      assert(isFrame || isFrameNotice(message), 'a shard sends frames')
      if (isFrame) this.#pending -= countOf(message)
      else this.#pending -= message.kind === 'late' ? 1 : message.count
      if (!this.#hasLink) this.#closeWhenIdle()
      else if (isFrame) this.#pass(message)
      else if (message.kind === 'late') this.#passLate(message)
      else this.#parts.link.close('the peer sent an invalid frame')
    })
    port.once('close', () => {
      this.isClosed = true
      this.release()
      this.#sendLeft()
    })
  }

  send(frame: ArrayBuffer): void {
    if (this.isClosed) return
    this.#pending += countOf(frame)
    this.#port.postMessage(frame, [frame])
  }

  serves(noticeNo: number): void {
    this.#memory.startServing(this.#parts.front, noticeNo)
    this.#reportWhenTaken(noticeNo)
  }

  taken(noticeNo: number): void {
    this.#taken = noticeNo
    this.#takenAtMs = machineClock()
    this.#memory.acknowledge(this.#parts.front, noticeNo)
  }

  /**
   * How long the front has not processed the next notices, milliseconds; it does so once all fronts have
   * processed the earlier ones.
   */
  waitsMs(nowMs: number): number {
    const isOver = this.isClosed || this.#frontLeft || this.#passed === this.#taken
    return isOver || this.#taken !== this.#allAcknowledged ? 0 : nowMs - this.#takenAtMs
  }

  /** Other fronts no longer wait for this one. */
  frontLeft(): void {
    this.#frontLeft = true
    this.#memory.remove(this.#parts.front)
    this.release()
  }

  /** Drops frames that arrive later. */
  linkEnded(): void {
    this.#hasLink = false
  }

  /** The other node cannot answer any more, so other fronts no longer wait for it. */
  leave(): void {
    if (this.#hasLeft) return
    this.#hasLeft = true
    this.release()
    this.#closeWhenIdle()
  }

  #pass(frame: ArrayBuffer): void {
    const noticeNo = noticeNoOf(frame)
    if (this.#passed === this.#taken) this.#takenAtMs = machineClock()
    this.#passed = noticeNo
    this.#parts.link.sendFrame(this.#parts.shard, frame)
    if (noticeNo !== this.#awaited) this.#reportWhenTaken(noticeNo)
  }

  #passLate({ id, caller, frame }: LateFrame): void {
    const { link, shard } = this.#parts
    this.#lateAnswers += 1
    const sent = () => {
      this.#lateAnswers -= 1
      if (this.isClosed) this.#sendLeft()
    }
    if (link.sendLate({ principal: caller, parts: encodeLate(this.thread, frame), sent })) return
    this.#lateAnswers -= 1
    const outcomes: FrontFrame['outcomes'] = [[id, linkFull]]
    const refused = encodeOutcomes({
      outcomes,
      events: [],
      notices: [],
      appended: false,
      noticeNo: noticeNoOf(frame),
    })
    link.sendFrame(shard, refused)
  }

  /** Reports the end of the thread after all its answers were sent. */
  #sendLeft(): void {
    if (this.#hasLink && this.#lateAnswers === 0) this.#send({ kind: 'left', ...this.thread })
  }

  #send(message: ToFront): void {
    this.#parts.link.send(message)
  }

  #reportWhenTaken(noticeNo: number): void {
    this.#awaited = noticeNo
    void this.#memory.untilAcknowledged(noticeNo).then(() => {
      this.#allAcknowledged = noticeNo
      this.#takenAtMs = machineClock()
      const allAcknowledged: ToFront = { kind: 'allAcknowledged', ...this.thread, noticeNo: noticeNo }
      if (this.#hasLink) this.#parts.link.sendUrgent(allAcknowledged)
    })
  }

  #closeWhenIdle(): void {
    if (this.#hasLeft && this.#pending === 0) this.#port.close()
  }
}
