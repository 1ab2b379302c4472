import { refuse } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import type { CommandFrame, OutcomeFrame } from '../../src/protocol/frame.js'
import type { Command, Outcome, StoreFlush } from '../../src/protocol/messages.js'
import { noFigures, type ShardFigures } from '../../src/protocol/shard-figures.js'
import type { Notice } from '../../src/protocol/notices.js'
import { HlcClock } from '../../src/strand/hlc.js'
import {
  agentOf,
  decide,
  isShortWrite,
  longSteps,
  read,
  type Read,
  type ShortWrite,
  type Write,
  partition,
  type Numbered,
} from './apply.js'
import { CommitGroup } from './commit-group.js'
import type { Decision, ShardState, Begun, Turn } from './state.js'
import { DiskPace } from '../store/log/disk-pace.js'
import { CallerTurns } from './caller-turns.js'
import { CommitTimes } from './commit-times.js'
import { eventsOf, noticesOf } from './group-effects.js'
import { bodyBytesOf, roomFor, sizeOf } from './sizes.js'
import { PendingReplies, type SendReplies } from './front-frames.js'

const noRoom = refuse(
  'storage_full',
  'The data disk has no room for a write, or its log can open no file; reads go on',
)

/**
 * One shard: takes commands, decides them one after the other, commits their writes together, and then answers. It
 * works in turns, each with one commit; between two turns it takes the commands that have arrived, so nobody waits for
 * the end of a long command (docs/adr/0027-turns-of-a-shard.md).
 */
export class Shard {
  readonly #state: ShardState
  readonly #hlc: HlcClock
  readonly #figures: ShardFigures = noFigures()
  readonly #times: CommitTimes
  readonly #pace = new DiskPace()
  #writes: Numbered<ShortWrite>[] = []
  /** Reads that begin or end watching: an event may not be missed by a read that comes later. */
  #watches: Numbered<Read>[] = []
  readonly #reads = new CallerTurns<Numbered<Read>>()
  /** Those of one caller in the order that they came, which keeps the chunks of an upload in order. */
  readonly #longWrites = new CallerTurns<Numbered<Write>>()
  /** The first of them, once it has begun. */
  #underWay: Begun | undefined
  /** The long write had no part in the last turn, because there were many short ones. */
  #longIsDue = false
  /** Commands that the last group decided. */
  #decided = 0
  /** A flush was due after the last turn. */
  #flushPutOff = false
  /** Short writes were decided that may not be on disk yet. */
  #shortUntold = false
  /** Until when it carries out nothing, by the steady clock; 0 when it does. */
  #restsUntilMs = 0
  readonly #pending: PendingReplies
  readonly #turn: { group: CommitGroup; endsAtMs: number } & Turn

  constructor(state: ShardState, tell: SendReplies) {
    this.#state = state
    this.#hlc = new HlcClock(state.clock, state.store.lastHlc)
    this.#pending = new PendingReplies(() => state.store.segments, tell)
    this.#times = new CommitTimes(state.steadyClock, this.#figures)
    this.#figures.agents = state.store.agents.count
    this.#figures.replayed = state.store.replayed
    this.#turn = {
      group: new CommitGroup(this.#hlc, state.random),
      endsAtMs: 0,
      spent() {
        state.beat()
        return state.steadyClock() >= this.endsAtMs
      },
      held: new Set(),
    }
  }

  /** Takes commands that have arrived. */
  take(commands: CommandFrame): void {
    const { writes, reads, flushes, goOns } = partition(commands)
    if (flushes.length > 0) this.#flushNow(flushes)
    if (goOns.length > 0) this.#goOnNow(goOns)
    for (const [id, write] of writes) {
      if (isShortWrite(write)) this.#writes.push([id, write])
      else this.#longWrites.push(callerOf(write), [id, write])
    }
    for (const one of reads) {
      if (one[1].kind === 'watch') this.#watches.push(one)
      else this.#reads.push(callerOf(one[1]), one)
    }
  }

  /**
   * At once, before anything that came with it or is still on its way: so all shards that are asked together are brought
   * to where they were before that.
   */
  #flushNow(flushes: readonly Numbered<StoreFlush>[]): void {
    const { store, steadyClock } = this.#state
    store.flush()
    this.syncNow()
    const flushed = { kind: 'flushed', segment: store.flushedSegment } as const
    if (flushes.some(([, { rest }]) => rest)) this.#restsUntilMs = steadyClock() + limits.storeRestMs
    this.#answer(flushes.map(([id]) => [id, flushed]))
  }

  #goOnNow(ids: readonly number[]): void {
    this.goOn()
    this.#answer(ids.map((id) => [id, { kind: 'done' }]))
  }

  /** Ends the rest that it was asked for. */
  goOn(): void {
    this.#restsUntilMs = 0
  }

  get #rests(): boolean {
    return this.#restsUntilMs > 0 && this.#state.steadyClock() < this.#restsUntilMs
  }

  /** Tells the front something that no command led to. */
  note(notice: Notice): void {
    this.#answer([], { notices: [notice] })
  }

  #answer(
    outcomes: OutcomeFrame['outcomes'],
    { notices = [], large }: Partial<Pick<OutcomeFrame, 'notices' | 'large'>> = {},
  ): void {
    const more = large !== undefined && large.size > 0 ? { large } : {}
    this.#pending.add({ outcomes, events: [], figures: this.#figures, notices, appended: false, ...more })
  }

  /** Whether commands wait that may be carried out. */
  get busy(): boolean {
    if (this.#rests) return false
    return this.#writes.length + this.#watches.length + this.#reads.length > 0 || this.#hasLong
  }

  /** Carries out everything that has arrived, and waits for the disk. @throws Error as `turn` does */
  run(commands: CommandFrame): void {
    this.take(commands)
    while (this.busy) {
      this.turn()
      this.flush()
    }
    this.syncNow()
  }

  /** Groups that are decided and may not be on disk yet; nothing that was decided upon them is told. */
  get underWay(): number {
    const { written, durable } = this.#state.store.segments
    return written - durable
  }

  /**
   * Whether the thread waits for the disk after this turn: because the disk is quick; for a lone command, which is answered
   * sooner by two turns of the event loop; and for somebody who wrote little where the next turn may be a long one.
   */
  waits(): boolean {
    const alone = this.#decided <= 1 && !this.busy
    const hurries = this.#shortUntold && this.#hasLong
    return this.#pace.waits() || (alone && this.underWay === 1) || hurries
  }

  /** Waits for the disk, and tells. @throws Error when it is not known what is on disk: the shard must stop */
  syncNow(): void {
    const { store, steadyClock } = this.#state
    if (this.underWay > 0) {
      const sinceMs = steadyClock()
      store.syncNow()
      this.#pace.took(steadyClock() - sinceMs)
    }
    this.releaseDurable()
  }

  /** Tells what waited for the disk, as far as it is there now. */
  releaseDurable(): void {
    this.#times.durable(this.#state.store.segments.durable)
    this.#pending.releaseDurable()
    if (this.underWay === 0) this.#shortUntold = false
  }

  /**
   * Carries out a part of what has arrived: writes in one commit group, then reads, which see these writes.
   * @throws Error when a commit failed or something that must hold does not: the shard must stop
   */
  turn(): void {
    this.#turn.group = new CommitGroup(this.#hlc, this.#state.random)
    const decisions: Numbered<Decision>[] = this.#refusedForRoom()
    if (!this.#longIsDue) this.#decideWrites(decisions)
    this.#shortUntold ||= decisions.length > 0
    const crowded = !this.#longIsDue && this.#turn.spent()
    this.#longIsDue = crowded && this.#hasLong
    if (!crowded) this.#goOnWithLong(decisions)
    if (decisions.length > 0 || !this.#turn.group.empty) this.#commit(decisions)
    this.#answerReads()
  }

  get #hasLong(): boolean {
    return this.#underWay !== undefined || this.#longWrites.length > 0
  }

  #begin(lastsMs: number): void {
    this.#turn.endsAtMs = this.#state.steadyClock() + lastsMs
  }

  /**
   * Refuses writes for which the disk may not have room. A long write that has begun goes on: its commit shows whether
   * there was room.
   */
  #refusedForRoom(): Numbered<Decision>[] {
    if (this.#writes.length + this.#longWrites.length === 0) return []
    const waiting: Numbered<Write>[] = this.#writes.slice(0, limits.commitRecordsMax)
    const long = this.#longWrites.peek()
    if (long !== undefined) waiting.push(long)
    if (this.#state.store.hasRoom(roomFor(waiting.map(([, write]) => write)))) return []
    const refused: Numbered<Write>[] = [...this.#writes, ...this.#longWrites.takeAll()]
    this.#writes = []
    return refused.map(([id]) => [id, noRoom])
  }

  #decideWrites(decisions: Numbered<Decision>[]): void {
    this.#begin(limits.shardTurnMs)
    const { group, held } = this.#turn
    const waiting: Numbered<ShortWrite>[] = []
    let bytes = 0
    let full = false
    for (const one of this.#writes) {
      const [id, write] = one
      if (full || held.has(agentOf(write))) {
        waiting.push(one)
        continue
      }
      decisions.push([id, decide(this.#state, write, group)])
      bytes += bodyBytesOf(write)
      full = this.#turn.spent() || group.size >= limits.commitRecordsMax || bytes > limits.commitBytesMax
    }
    this.#writes = waiting
  }

  /** Goes on with long writes: for a whole turn, or for a part of it where short writes wait for its commit. */
  #goOnWithLong(decisions: Numbered<Decision>[]): void {
    this.#begin(decisions.length > 0 ? limits.shardTurnMs / 4 : limits.shardTurnMs)
    let bytes = 0
    while (this.#turn.group.size < limits.commitRecordsMax && bytes <= limits.commitBytesMax) {
      const first = this.#underWay ?? this.#nextLong()
      if (first === undefined) return
      const { done, value } = first.steps.next()
      if (done !== true) return
      this.#underWay = undefined
      decisions.push([first.id, value])
      bytes += first.bytes
      if (this.#turn.spent()) return
    }
  }

  #nextLong(): Begun | undefined {
    const next = this.#longWrites.take()
    if (next === undefined) return undefined
    const [id, write] = next
    const steps = longSteps(this.#state, write, this.#turn)
    this.#underWay = { id, steps, bytes: bodyBytesOf(write) }
    return this.#underWay
  }

  #answerReads(): void {
    if (this.#watches.length + this.#reads.length === 0) return
    this.#begin(limits.shardTurnMs)
    const failures: string[] = []
    const outcomes = this.#watches.map(([id, command]): OutcomeFrame['outcomes'][number] => [
      id,
      this.#read(command, failures),
    ])
    this.#watches = []
    const large = new Map<number, string>()
    for (let bytes = 0; bytes < limits.turnAnswerBytes;) {
      const next = this.#reads.take()
      if (next === undefined) break
      const [id, command] = next
      if (leadsElsewhere(command)) this.#state.store.flush()
      const outcome = this.#read(command, failures)
      outcomes.push([id, outcome])
      const size = sizeOf(outcome)
      bytes += size
      if (size >= limits.linkLateBytesMin && isForCallerAlone(command)) large.set(id, callerOf(command))
      if (this.#turn.spent()) break
    }
    this.#answer(outcomes, { notices: failures.length > 0 ? [{ kind: 'failed', failures }] : [], large })
  }

  /**
   * A read that throws, as for a damaged record, is answered with 500. It has changed nothing, so the shard goes on.
   */
  #read(command: Read, failures: string[]): Outcome {
    try {
      return read(this.#state, command)
    } catch (error) {
      failures.push(
        `${command.kind}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
      )
      return refuse('internal_error', 'The shard could not read this; the log of the server says why')
    }
  }

  /** True when there is work for an idle shard. */
  get needsStep(): boolean {
    return !this.#rests && this.#state.store.needsStep
  }

  /** Does a part of the work that was left for an idle moment. */
  step(): void {
    this.#state.store.step()
  }

  /**
   * Brings the store up to its log where that is due; while commands wait, only where it cannot be put off.
   * @throws Error when it failed: the shard must stop
   */
  flush(): void {
    const { store, steadyClock, beat } = this.#state
    if (this.#rests || !store.flushIsDue(steadyClock(), this.busy ? 2 : 1)) return
    // Whoever wrote little has waited for the last turn, and need not wait for the flush as well.
    this.#flushPutOff = !this.#flushPutOff && this.#writes.length > 0
    if (this.#flushPutOff) return
    // Nobody waits for the flush.
    this.syncNow()
    const startedAtMs = steadyClock()
    store.flush()
    this.#figures.flushes += 1
    this.#figures.flushSecs += (steadyClock() - startedAtMs) / 1_000
    this.#figures.memtableBytes = store.memtableBytes
    this.#figures.memtableSinceMs = 0
    // Nothing else may be told for long.
    this.#answer([])
    beat()
  }

  /** Commits the group of this turn, and answers. */
  #commit(decisions: readonly Numbered<Decision>[]): void {
    const { group } = this.#turn
    this.#decided = decisions.length
    group.seal()
    if (!group.empty) {
      const nowMs = this.#state.clock()
      const sinceMs = this.#state.steadyClock()
      this.#state.store.commit(group, nowMs)
      this.#state.beat()
      this.#times.written(this.#state.store.segments.written, sinceMs)
      this.#figures.memtableBytes = this.#state.store.memtableBytes
      if (this.#figures.memtableSinceMs === 0) this.#figures.memtableSinceMs = nowMs
      this.#figures.commits++
      this.#figures.records += group.size
      this.#figures.agents = this.#state.store.agents.count
    }
    const outcomes: OutcomeFrame['outcomes'] = decisions.map(([id, decision]) => [
      id,
      typeof decision === 'function' ? decision() : decision,
    ])
    this.#pending.add({
      outcomes,
      events: eventsOf(group, this.#state.watched),
      figures: this.#figures,
      notices: noticesOf(group, this.#state.store),
      appended: !group.empty,
    })
  }
}

function callerOf({ caller = '' }: Command): string {
  return caller
}

/** Whether whoever asks reads LMDB next, in another thread. */
function leadsElsewhere({ kind }: Read): boolean {
  return kind === 'strandLocate' || kind === 'strandThen'
}

/** Whether a front does nothing with the answer but pass it on: it may come later than what the shard tells next. */
function isForCallerAlone({ kind }: Read): boolean {
  return ['recordGet', 'recordQuery', 'edgeList', 'proposalList', 'agentList'].includes(kind)
}
