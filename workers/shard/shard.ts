import { refuse } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits.js'
import type { CommandFrame, OutcomeFrame } from '../../src/protocol/frame.js'
import type { Outcome, ShardFigures, StreamEvent } from '../../src/protocol/messages.js'
import type { Notice } from '../../src/protocol/notices.js'
import { HlcClock } from '../../src/strand/hlc.js'
import {
  agentOf,
  decide,
  isLongWrite,
  isWrite,
  longSteps,
  read,
  type LongWrite,
  type Read,
  type ShortWrite,
  type Write,
} from './apply.js'
import { isStreamed, streamEvent } from '../commands/stream.js'
import { CommitGroup } from './commit-group.js'
import { type Decision, type ShardState } from './state.js'
import { importBytesMax, writeBytesMax } from '../store/preallocation.js'
import type { Steps, Turn } from './turn.js'

/** Sends a frame to the front thread. */
export type Tell = (frame: OutcomeFrame) => void

const noRoom = refuse('storage_full', 'The data disk has no room for a write; reads go on')

/** A command with the number that its outcome carries. */
type Numbered<C> = [id: number, command: C]

/**
 * One shard: takes commands, decides them one after the other, commits their writes together, and then answers. It
 * works in turns, each with one commit; between two turns it takes the commands that have arrived, so nobody waits for
 * the end of a long command (docs/adr/0027-turns-of-a-shard.md).
 */
export class Shard {
  readonly #state: ShardState
  readonly #hlc: HlcClock
  readonly #tell: Tell
  readonly #figures: ShardFigures = { records: 0, commits: 0, commitSecs: 0, agents: 0 }
  #writes: Numbered<ShortWrite>[] = []
  /** In the order that they came. */
  #reads: Numbered<Read>[] = []
  /** In the order that they came, which keeps the chunks of an upload in order. */
  #longWrites: Numbered<LongWrite>[] = []
  /** The first of them, once it has begun. */
  #underWay: { id: number; steps: Steps<Decision> } | undefined
  /** The long write had no part in the last turn, because there were many short ones. */
  #longIsDue = false
  readonly #turn: { group: CommitGroup; endsAtMs: number } & Turn

  constructor(state: ShardState, tell: Tell) {
    this.#state = state
    this.#hlc = new HlcClock(state.clock, state.store.lastHlc)
    this.#tell = tell
    this.#figures.agents = state.store.agents.count
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
    const { writes, reads } = sortOut(commands)
    for (const [id, write] of writes) {
      if (isLongWrite(write)) this.#longWrites.push([id, write])
      else this.#writes.push([id, write])
    }
    this.#reads.push(...reads)
  }

  /** Whether commands still wait. */
  get busy(): boolean {
    return this.#writes.length + this.#reads.length > 0 || this.#hasLong
  }

  /** Carries out everything that has arrived. @throws Error as `turn` does */
  run(commands: CommandFrame): void {
    this.take(commands)
    while (this.busy) this.turn()
  }

  /**
   * Carries out a part of what has arrived: writes in one commit group, then reads, which see these writes.
   * @throws Error when a commit failed or something that must hold does not: the shard must stop
   */
  turn(): void {
    this.#turn.group = new CommitGroup(this.#hlc, this.#state.random)
    const decisions: Numbered<Decision>[] = this.#refusedForRoom()
    if (!this.#longIsDue) this.#decideWrites(decisions)
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
    const waiting = [...this.#writes.slice(0, limits.commitRecordsMax), ...this.#longWrites.slice(0, 1)]
    if (this.#state.store.hasRoom(roomFor(waiting))) return []
    const refusals = [...this.#writes, ...this.#longWrites].map(([id]): Numbered<Decision> => [id, noRoom])
    this.#writes = []
    this.#longWrites = []
    return refusals
  }

  #decideWrites(decisions: Numbered<Decision>[]): void {
    this.#begin(limits.shardTurnMs)
    const { group, held } = this.#turn
    const waiting: Numbered<ShortWrite>[] = []
    let bytes = 0
    for (const one of this.#writes) {
      const [id, write] = one
      const full = group.size >= limits.commitRecordsMax || bytes > limits.commitBytesMax
      if (full || held.has(agentOf(write))) {
        waiting.push(one)
        continue
      }
      this.#state.beat()
      decisions.push([id, decide(this.#state, write, group)])
      if ('body' in write) bytes += write.body.length
    }
    this.#writes = waiting
  }

  /** Goes on with long writes: for a whole turn, or for a part of it where short writes wait for its commit. */
  #goOnWithLong(decisions: Numbered<Decision>[]): void {
    this.#begin(decisions.length > 0 ? limits.shardTurnMs / 4 : limits.shardTurnMs)
    while (this.#turn.group.size < limits.commitRecordsMax) {
      const first = this.#underWay ?? this.#nextLong()
      if (first === undefined) return
      const { done, value } = first.steps.next()
      if (done !== true) return
      this.#underWay = undefined
      decisions.push([first.id, value])
      if (this.#turn.spent()) return
    }
  }

  #nextLong(): { id: number; steps: Steps<Decision> } | undefined {
    const next = this.#longWrites.shift()
    if (next === undefined) return undefined
    this.#underWay = { id: next[0], steps: longSteps(this.#state, next[1], this.#turn) }
    return this.#underWay
  }

  #answerReads(): void {
    if (this.#reads.length === 0) return
    this.#begin(limits.shardTurnMs)
    const failures: string[] = []
    const outcomes: OutcomeFrame['outcomes'] = []
    let bytes = 0
    for (const [id, command] of this.#reads) {
      if (outcomes.length > 0 && (bytes >= limits.turnAnswerBytes || this.#turn.spent())) break
      const outcome = this.#read(command, failures)
      outcomes.push([id, outcome])
      bytes += sizeOf(outcome)
    }
    this.#reads = outcomes.length === this.#reads.length ? [] : this.#reads.slice(outcomes.length)
    const notices: Notice[] = failures.length > 0 ? [{ kind: 'failed', failures }] : []
    this.#tell({ outcomes, events: [], figures: this.#figures, notices })
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
    return this.#state.store.needsStep
  }

  /** Does a part of the work that was left for an idle moment. */
  step(): void {
    this.#state.store.step()
  }

  /** Commits the group of this turn, and answers. */
  #commit(decisions: readonly Numbered<Decision>[]): void {
    const { group } = this.#turn
    group.seal()
    if (!group.empty) {
      const startedAtMs = this.#state.steadyClock()
      this.#state.store.commit(group, this.#state.clock())
      this.#state.beat()
      this.#figures.commitSecs += (this.#state.steadyClock() - startedAtMs) / 1000
      this.#figures.commits++
      this.#figures.records += group.size
      this.#figures.agents = this.#state.store.agents.count
    }
    const outcomes: OutcomeFrame['outcomes'] = decisions.map(([id, decision]) => [
      id,
      typeof decision === 'function' ? decision() : decision,
    ])
    this.#tell({
      outcomes,
      events: this.#eventsOf(group),
      figures: this.#figures,
      notices: this.#noticesOf(group),
    })
  }

  #noticesOf(group: CommitGroup): Notice[] {
    const notices: Notice[] = []
    const policiesOf = [...group.agentChanges].flatMap(([name, { policies }]) =>
      policies === undefined ? [] : [name],
    )
    if (policiesOf.length > 0) notices.push({ kind: 'policiesChanged', agents: policiesOf })
    if (group.erasures.length > 0) {
      const agents = group.erasures.map(({ agentNo }) => this.#state.store.agents.nameOf(agentNo))
      notices.push({ kind: 'erased', agents: [...new Set(agents)] })
    }
    if (group.changedRecords.length > 0)
      notices.push({ kind: 'recordsChanged', hashes: group.changedRecords })
    const { made, gone } = group.apiKeyChanges
    if (made.length + gone.length > 0) notices.push({ kind: 'apiKeysChanged', changes: group.apiKeyChanges })
    if (group.imported.length > 0) {
      const agents = group.imported.map(({ agent }) => agent.name)
      notices.push({ kind: 'imported', agents: [...new Set(agents)] })
    }
    return notices
  }

  #eventsOf(group: CommitGroup): StreamEvent[] {
    const { watched } = this.#state
    if (watched.size === 0) return []
    const all = watched.has('')
    return group.records
      .filter((record) => (all || watched.has(record.agent.name)) && isStreamed(record))
      .map((record) => streamEvent(record.agent.name, record))
  }
}

/** By how many bytes writes can make the data file longer, as far as that is known before they are decided. */
function roomFor(writes: readonly Numbered<Write>[]): number {
  let bytes = 0
  for (const [, command] of writes) {
    if (command.kind === 'strandImport') {
      bytes += importBytesMax(command.lastSeq - command.firstSeq + 1, command.chunk.length)
      continue
    }
    const body = 'body' in command ? command.body : 'chunk' in command ? command.chunk : undefined
    bytes += writeBytesMax(body?.length ?? 0)
  }
  return bytes
}

/** Roughly how many bytes an outcome has, for those that can be large. */
function sizeOf(outcome: Outcome): number {
  switch (outcome.kind) {
    case 'reply':
      return outcome.body.length
    case 'rows':
      return outcome.rows.reduce((sum, row) => sum + row.length, 0)
    case 'proposals':
      return outcome.rows.reduce((sum, row) => sum + row.length, 0)
    case 'page':
      return outcome.events.reduce((sum, { data }) => sum + data.length, 0)
    case 'names':
      return outcome.names.reduce((sum, name) => sum + name.length, 0)
    default:
      return 0
  }
}

/**
 * Separates writes from reads, and puts the writes of one agent together in the order they came, so that they lie
 * together in a block. Commands of one frame come from requests that were under way at the same time, so no order
 * between agents was promised to anyone.
 */
function sortOut(commands: CommandFrame): { writes: Numbered<Write>[]; reads: Numbered<Read>[] } {
  const reads: Numbered<Read>[] = []
  const byAgent = new Map<string, Numbered<Write>[]>()
  for (const [id, command] of commands) {
    if (!isWrite(command)) {
      reads.push([id, command])
      continue
    }
    const agent = agentOf(command)
    const others = byAgent.get(agent)
    if (others === undefined) byAgent.set(agent, [[id, command]])
    else others.push([id, command])
  }
  return { writes: [...byAgent.values()].flat(), reads }
}
