import { limits } from '../../src/base/limits/limits.js'
import type { CommandFrame, OutcomeFrame } from '../../src/protocol/frame.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { StoreFlush } from '../../src/protocol/store-tasks.js'
import { noFigures, type ShardFigures } from '../../src/protocol/shard-figures.js'
import type { Notice } from '../../src/protocol/notices.js'
import { HlcClock } from '../../src/strand/hlc.js'
import {
  agentOf,
  callerOf,
  type CommandTable,
  type Numbered,
  partition,
  type QueuedWrite,
  type Read,
  type Write,
} from './command-table.js'
import { CommitGroup } from './commit-group.js'
import type { ShardState, Turn } from './state.js'
import { orFailure, type LongWrite, TurnDecisions } from './turn-decisions.js'
import { DiskPace } from '../store/log/disk-pace.js'
import { CallerTurns } from '../../src/base/caller-turns.js'
import { CommitTimes } from './commit-times.js'
import { eventsOf, noticesOf } from './group-effects.js'
import { bodyBytesOf, spaceFor, sizeOf } from './sizes.js'
import { PendingReplies, type SendReplies } from './front-frames.js'

/**
 * A shard decides commands one after another, commits their writes together, and then answers. It works in
 * turns of one commit each and takes new commands between two turns, so that no command waits for the end of
 * a long one (docs/adr/0027-turns-of-a-shard.md).
 */
export class Shard {
  readonly #state: ShardState
  readonly #commands: CommandTable
  readonly #hlc: HlcClock
  readonly #figures: ShardFigures = noFigures()
  readonly #times: CommitTimes
  readonly #pace = new DiskPace()
  #writes: Numbered<QueuedWrite>[] = []
  /**
   * Commands that start or stop watching; they precede other reads, so that no event is missed after a read.
   */
  #watches: Numbered<Read>[] = []
  readonly #reads = new CallerTurns<Numbered<Read>>()
  /** Writes of one caller are taken in order of arrival, which keeps the chunks of an upload in order. */
  readonly #longWrites = new CallerTurns<Numbered<Write>>()
  #currentLong: LongWrite | undefined
  /** Whether short writes left no time for the long write in the last turn. */
  #longIsDue = false
  /** The number of commands that the last group decided. */
  #decided = 0
  /** Whether a due flush was postponed after the last turn. */
  #flushPostponed = false
  /** Whether replies to short writes are pending. */
  #shortPending = false
  /** The end of the pause, by the steady clock; 0 while the shard works. */
  #pausedUntilMs = 0
  /** When the last write arrived, by the steady clock. */
  #lastWriteMs = -Infinity
  readonly #pending: PendingReplies
  readonly #turn: { group: CommitGroup; endsAtMs: number } & Turn

  constructor(state: ShardState, commands: CommandTable, send: SendReplies) {
    this.#state = state
    this.#commands = commands
    this.#hlc = new HlcClock(state.clock, state.store.lastHlc)
    this.#pending = new PendingReplies(() => state.store.segments, send)
    this.#times = new CommitTimes(state.steadyClock, this.#figures)
    this.#figures.agents = state.store.agents.count
    this.#figures.replayed = state.store.replayed
    this.#turn = {
      group: new CommitGroup(this.#hlc, state.random),
      endsAtMs: 0,
      spent() {
        state.heartbeat()
        return state.steadyClock() >= this.endsAtMs
      },
      held: new Set(),
    }
  }

  /** Queues commands that have arrived; flushes and resumes are carried out immediately. */
  take(commands: CommandFrame): void {
    const { writes, reads, flushes, resumes } = partition(commands)
    if (flushes.length > 0) this.#flushNow(flushes)
    if (resumes.length > 0) {
      this.resume()
      this.#answer(resumes.map((id) => [id, { kind: 'done' }]))
    }
    if (writes.length > 0) this.#lastWriteMs = this.#state.steadyClock()
    for (const [id, write] of writes) {
      if (write.kind === 'uploadsEnd' || this.#commands.isShortWrite(write)) this.#writes.push([id, write])
      else this.#longWrites.push(callerOf(write), [id, write])
    }
    for (const one of reads) {
      if (one[1].kind === 'watch') this.#watches.push(one)
      else this.#reads.push(callerOf(one[1]), one)
    }
  }

  /** Flushes before every command of the same frame, so that all shards flush at the same point. */
  #flushNow(flushes: readonly Numbered<StoreFlush>[]): void {
    const { store, steadyClock } = this.#state
    store.flush()
    this.syncNow()
    const flushed = { kind: 'flushed', segment: store.flushedSegment } as const
    if (flushes.some(([, { rest }]) => rest)) this.#pausedUntilMs = steadyClock() + limits.storePauseMs
    this.#answer(flushes.map(([id]) => [id, flushed]))
  }

  /** Ends the pause that a flush requested. */
  resume(): void {
    this.#pausedUntilMs = 0
  }

  get #isPaused(): boolean {
    return this.#pausedUntilMs > 0 && this.#state.steadyClock() < this.#pausedUntilMs
  }

  /** Sends a notice to the fronts. */
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

  /** Whether waiting commands can be carried out. */
  get busy(): boolean {
    if (this.#isPaused) return false
    return this.#writes.length + this.#watches.length + this.#reads.length > 0 || this.#hasLong
  }

  /** Carries out commands and waits for the disk. @throws Error as `turn` does */
  run(commands: CommandFrame): void {
    this.take(commands)
    while (this.busy) {
      this.turn()
      this.flush()
    }
    this.syncNow()
  }

  /** The number of segments that may not be on disk yet; replies that depend on them are pending. */
  get unsyncedCount(): number {
    const { written, durable } = this.#state.store.segments
    return written - durable
  }

  /**
   * Whether the thread waits for the disk after this turn: if the disk is fast; if there was a single
   * command, which is then answered two iterations of the event loop earlier; or if short writes are pending
   * and the next turn may be long.
   */
  waits(): boolean {
    const isSingle = this.#decided <= 1 && !this.busy
    const isUrgent = this.#shortPending && this.#hasLong
    return this.#pace.shouldWait() || (isSingle && this.unsyncedCount === 1) || isUrgent
  }

  /**
   * Waits for the disk and sends the pending replies.
   * @throws Error if it is unknown what is on disk: the shard must stop
   */
  syncNow(): void {
    const { store, steadyClock } = this.#state
    if (this.unsyncedCount > 0) {
      const sinceMs = steadyClock()
      store.syncNow()
      this.#pace.recordSync(steadyClock() - sinceMs)
    }
    this.releaseDurable()
  }

  /** Sends the pending replies whose segments are on disk. */
  releaseDurable(): void {
    this.#times.durable(this.#state.store.segments.durable)
    this.#pending.releaseDurable()
    if (this.unsyncedCount === 0) this.#shortPending = false
  }

  /**
   * Carries out some of the waiting commands: writes in one commit group, then reads, which see these writes.
   * @throws Error if a commit or an assertion failed: the shard must stop
   */
  turn(): void {
    const newGroup = (): CommitGroup => new CommitGroup(this.#hlc, this.#state.random)
    this.#turn.group = newGroup()
    const decisions = new TurnDecisions(
      { state: this.#state, commands: this.#commands },
      this.#turn,
      newGroup,
    )
    this.#refuseIfDiskFull(decisions)
    if (!this.#longIsDue) this.#decideWrites(decisions)
    this.#shortPending ||= decisions.count > 0
    const crowded = !this.#longIsDue && this.#turn.spent()
    this.#longIsDue = crowded && this.#hasLong
    if (!crowded) this.#continueLong(decisions)
    if (decisions.count > 0 || !this.#turn.group.empty) this.#commit(decisions)
    this.#answerReads()
    this.#noteSetAside()
  }

  get #hasLong(): boolean {
    return this.#currentLong !== undefined || this.#longWrites.length > 0
  }

  #begin(lastsMs: number): void {
    this.#turn.endsAtMs = this.#state.steadyClock() + lastsMs
  }

  /**
   * Refuses all waiting writes if the disk may be too full for them. A long write that has started continues.
   */
  #refuseIfDiskFull(decisions: TurnDecisions): void {
    if (this.#writes.length + this.#longWrites.length === 0) return
    const waiting: Numbered<Write>[] = this.#writes.slice(0, limits.commitRecordsMax)
    const long = this.#longWrites.peek()
    if (long !== undefined) waiting.push(long)
    if (this.#state.store.hasSpace(spaceFor(waiting.map(([, write]) => write)))) return
    for (const [id] of this.#writes) decisions.refuseWithoutSpace(id)
    for (const [id] of this.#longWrites.takeAll()) decisions.refuseWithoutSpace(id)
    this.#writes = []
  }

  #decideWrites(decisions: TurnDecisions): void {
    this.#begin(limits.shardTurnMs)
    const { held } = this.#turn
    const waiting: Numbered<QueuedWrite>[] = []
    let bytes = 0
    let full = false
    for (const one of this.#writes) {
      const [id, write] = one
      const isEnd = write.kind === 'uploadsEnd'
      if (isEnd && waiting.length === 0) this.#longWrites.push(callerOf(write), [id, write])
      else if (isEnd || full || held.has(agentOf(write))) waiting.push(one)
      else {
        const decided = decisions.decide(one, () =>
          this.#commands.decide(this.#state, write, this.#turn.group),
        )
        bytes += bodyBytesOf(write)
        // After a failure, which decided all others again, the turn ends.
        full = !decided || this.#turn.spent() || this.#isGroupFull(bytes)
      }
    }
    this.#writes = waiting
  }

  #isGroupFull(bytes: number): boolean {
    return this.#turn.group.size >= limits.commitRecordsMax || bytes > limits.commitBytesMax
  }

  /** Continues long writes: for a whole turn, or for a quarter of it if short writes wait for the commit. */
  #continueLong(decisions: TurnDecisions): void {
    this.#begin(decisions.count > 0 ? limits.shardTurnMs / 4 : limits.shardTurnMs)
    let bytes = 0
    while (!this.#isGroupFull(bytes)) {
      const began = this.#currentLong
      const first = began ?? this.#nextLong()
      if (first === undefined) return
      const step = decisions.attempt(first.one, () => first.steps.next())
      if (step !== undefined && step.done !== true) return
      this.#currentLong = undefined
      if (step === undefined) return
      // What an earlier turn began cannot be decided again, so nothing follows it that could fail.
      decisions.add(first.one, step.value, began === undefined)
      bytes += first.bytes
      if (began !== undefined || this.#turn.spent()) return
    }
  }

  #nextLong(): LongWrite | undefined {
    const next = this.#longWrites.take()
    if (next === undefined) return undefined
    const steps = this.#commands.longSteps(this.#state, next[1], this.#turn)
    this.#currentLong = { one: next, steps, bytes: bodyBytesOf(next[1]) }
    return this.#currentLong
  }

  #answerReads(): void {
    if (this.#watches.length + this.#reads.length === 0) return
    this.#begin(limits.shardTurnMs)
    const failures: string[] = []
    // A read has changed nothing, so the shard continues after one that throws, as for a damaged record.
    const outcomeOf = (command: Read): Outcome =>
      orFailure(this.#state, { kind: command.kind, failures }, () =>
        this.#commands.read(this.#state, command),
      )
    const outcomes = this.#watches.map(([id, command]): OutcomeFrame['outcomes'][number] => [
      id,
      outcomeOf(command),
    ])
    this.#watches = []
    const large = new Map<number, string>()
    for (let bytes = 0; bytes < limits.turnAnswerBytes;) {
      const next = this.#reads.take()
      if (next === undefined) break
      const [id, command] = next
      if (this.#commands.isReadElsewhere(command)) this.#state.store.flush()
      const outcome = outcomeOf(command)
      outcomes.push([id, outcome])
      const size = sizeOf(outcome)
      bytes += size
      if (size >= limits.linkSplitBytesMin && this.#commands.isForCallerAlone(command))
        large.set(id, callerOf(command))
      if (this.#turn.spent()) break
    }
    this.#answer(outcomes, { notices: failures.length > 0 ? [{ kind: 'failed', failures }] : [], large })
  }

  /**
   * Whether there is background work. Merging waits until the shard is idle: each flush does a part of it, and
   * a step between two frames makes callers wait.
   */
  get needsStep(): boolean {
    const { store, steadyClock } = this.#state
    const isIdle = steadyClock() - this.#lastWriteMs >= limits.shardIdleMs
    return !this.#isPaused && (isIdle ? store.needsStep : store.scrubs)
  }

  /** Does a part of the background work. */
  step(): void {
    this.#state.store.step()
  }

  /**
   * Flushes the memtable to the store if that is due; while commands wait, only if it cannot be postponed.
   * @throws Error if the flush failed: the shard must stop
   */
  flush(): void {
    const { store, steadyClock } = this.#state
    const patience = { busy: this.busy, unsynced: this.unsyncedCount > 0 }
    if (this.#isPaused || !store.flushIsDue(steadyClock(), patience)) return
    // Short writes that arrived during the last turn do not also wait for the flush.
    this.#flushPostponed = !this.#flushPostponed && this.#writes.length > 0
    if (this.#flushPostponed) return
    // Replies that are already decided do not wait for the flush.
    this.syncNow()
    const startedAtMs = steadyClock()
    store.flush()
    this.#figures.flushes += 1
    this.#figures.flushSecs += (steadyClock() - startedAtMs) / 1_000
    this.#figures.memtableBytes = store.memtableBytes
    this.#figures.memtableSinceMs = 0
    // Publish the figures now: the next reply may come much later.
    this.#answer([])
    this.#state.heartbeat()
  }

  /** Counts and logs the rows that were set aside. */
  #noteSetAside(): void {
    const { setAside } = this.#state.store
    this.#figures.setAside = setAside.count
    const failures = setAside.takeFailures()
    if (failures.length > 0) this.note({ kind: 'failed', failures })
  }

  /** Commits the group of this turn and queues the replies. */
  #commit(decisions: TurnDecisions): void {
    const { group } = this.#turn
    this.#decided = decisions.count
    group.seal()
    if (!group.empty) {
      const nowMs = this.#state.clock()
      const sinceMs = this.#state.steadyClock()
      this.#state.store.commit(group, nowMs)
      this.#state.heartbeat()
      this.#times.written(this.#state.store.segments.written, sinceMs)
      this.#figures.memtableBytes = this.#state.store.memtableBytes
      if (this.#figures.memtableSinceMs === 0) this.#figures.memtableSinceMs = nowMs
      this.#figures.commits++
      this.#figures.records += group.size
      this.#figures.agents = this.#state.store.agents.count
    }
    const { failures } = decisions
    const outcomes = Array.from(decisions.all, ([id, decision]): OutcomeFrame['outcomes'][number] => [
      id,
      typeof decision === 'function'
        ? orFailure(this.#state, { kind: 'answer', failures }, decision)
        : decision,
    ])
    const failed: Notice[] = failures.length > 0 ? [{ kind: 'failed', failures }] : []
    this.#pending.add({
      outcomes,
      events: eventsOf(group, this.#state.watched),
      figures: this.#figures,
      notices: [...noticesOf(group, this.#state.store), ...failed],
      appended: !group.empty,
    })
    if (this.unsyncedCount === 0) this.releaseDurable()
  }
}
