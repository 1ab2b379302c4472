import type { CommandFrame } from '../../src/protocol/frame.js'
import type { WriteOptions } from '../../src/protocol/command-options.js'
import type { Command, CommandOf, Outcome } from '../../src/protocol/messages.js'
import type { StoreFlush, StoreResume } from '../../src/protocol/store-tasks.js'
import type { CommitGroup } from './commit-group.js'
import type { Decision, PreparedWrite, ShardState, Steps, Turn } from './state.js'

export type Write = Extract<Command, { options: WriteOptions } | { kind: 'keyClaim' }>

/** A command that only reads. */
export type Read = Exclude<Command, Write | StoreFlush | StoreResume>

/**
 * A write that is decided in a single step. Parts of an import are short too, unless a late seal makes them
 * large.
 */
export type ShortWrite = Exclude<Write, { kind: 'ingestChunk' | 'batchAppend' | 'uploadsEnd' }>

/** A short write, or the end of uploads, which follows the short writes before it and then waits with the long ones. */
export type QueuedWrite = ShortWrite | CommandOf<'uploadsEnd'>

export function isWrite(command: Command): command is Write {
  return 'options' in command || command.kind === 'keyClaim'
}

/** The agent that a write is for; empty if it is for many agents or for none. */
export function agentOf(command: Write): string {
  return 'agent' in command ? command.agent : ''
}

export const callerOf = ({ caller = '' }: Command): string => caller

/** A write whose body was parsed. */
export interface Prepared {
  /** What identifies the request in any notation; undefined if the body is invalid. */
  content(): string | undefined
  run: PreparedWrite
}

/** How a kind of write is carried out. */
export interface WriteEntry<C> {
  decide(state: ShardState, command: C, group: CommitGroup): Decision
  /** Parses the body once, to identify the request and to carry it out. */
  prepare?(state: ShardState, command: C): Prepared
  /** Whether short writes precede it; by the length of its body unless given. */
  isLong?(command: C): boolean
  /** Decides a long one over several turns; in a single step unless given. */
  steps?(state: ShardState, command: C, turn: Turn): Steps<Decision>
}

/** How a kind of write is carried out that is always decided over several turns. */
export type LongWriteEntry<C> = Required<Pick<WriteEntry<C>, 'steps'>>

/** How a kind of read is answered. */
export interface ReadEntry<C> {
  answer(state: ShardState, command: C): Outcome
  /** Whether a front only passes the answer on to its client, so that later frames may overtake it. */
  isForCallerAlone?: true
  /** Whether the caller then reads LMDB in another thread, which requires a flush. */
  isReadElsewhere?: true
}

/** The commands of a feature, by kind. */
export interface FeatureCommands {
  writes?: { [K in ShortWrite['kind']]?: WriteEntry<CommandOf<K>> }
  longWrites?: { [K in Exclude<Write, QueuedWrite>['kind']]?: LongWriteEntry<CommandOf<K>> }
  reads?: { [K in Read['kind']]?: ReadEntry<CommandOf<K>> }
}

/** What a shard calls to carry out commands, so that it names no feature (workers/commands/decisions.ts). */
export interface CommandTable {
  /** Whether a write takes so little time that other commands can wait for it. */
  isShortWrite(command: Write): command is ShortWrite
  /** Decides a write, or finds the earlier answer to its Idempotency-Key. */
  decide(state: ShardState, command: ShortWrite, group: CommitGroup): Decision
  /** The same over several turns. */
  longSteps(state: ShardState, command: Write, turn: Turn): Steps<Decision>
  read(state: ShardState, command: Read): Outcome
  /** Whether a front only passes the answer on to its client, so that later frames may overtake it. */
  isForCallerAlone(command: Read): boolean
  /** Whether the caller then reads LMDB in another thread, which requires a flush. */
  isReadElsewhere(command: Read): boolean
}

/** A command and the number that its outcome will carry. */
export type Numbered<C> = [id: number, command: C]

/**
 * Separates writes from reads and groups the writes by agent, in order of arrival, so that the records of an
 * agent are adjacent in a block. The requests of one frame are concurrent, so their order between agents does
 * not matter.
 */
export function partition(commands: CommandFrame): {
  writes: Numbered<Write>[]
  reads: Numbered<Read>[]
  flushes: Numbered<StoreFlush>[]
  resumes: number[]
} {
  const reads: Numbered<Read>[] = []
  const flushes: Numbered<StoreFlush>[] = []
  const resumes: number[] = []
  const byAgent = new Map<string, Numbered<Write>[]>()
  const ends: Numbered<Write>[] = []
  for (const [id, command] of commands) {
    if (command.kind === 'storeFlush') {
      flushes.push([id, command])
      continue
    }
    if (command.kind === 'storeResume') {
      resumes.push(id)
      continue
    }
    if (!isWrite(command)) {
      reads.push([id, command])
      continue
    }
    if (command.kind === 'uploadsEnd') {
      ends.push([id, command])
      continue
    }
    const agent = agentOf(command)
    const others = byAgent.get(agent)
    if (others === undefined) byAgent.set(agent, [[id, command]])
    else others.push([id, command])
  }
  // Last, because another front may have sent its frame earlier although it was read later.
  return { writes: [...[...byAgent.values()].flat(), ...ends], reads, flushes, resumes }
}
