import { refuse, type Refusal } from '../../src/base/errors.js'
import type { RandomBytes } from '../../src/base/random.js'
import type { Clock } from '../../src/base/clock.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { ShardSettings } from '../../src/protocol/shard-data.js'
import type { CommitGroup } from './commit-group.js'
import type { Watched } from './front-frames.js'
import type { Agent } from '../store/tables/agent.js'
import type { ShardStore } from '../store/shard-store.js'

/** The state that commands work on: the shard's store, settings, clocks and source of randomness. */
export interface ShardState extends Omit<ShardSettings, 'path'> {
  store: ShardStore
  clock: Clock
  /** A monotonic clock in milliseconds, which limits the turns. */
  steadyClock: Clock
  random: RandomBytes
  /** 32 bytes: the key of the HMACs that replace e-mails in audit records. */
  emailHmacKey: Uint8Array
  /** The agents whose commits are sent to fronts as events. */
  watched: Watched
  /** Sends a heartbeat after each step of work; a thread without heartbeats is considered hung. */
  heartbeat(): void
}

/**
 * The decision of a write: a refusal (nothing was appended), or a function that returns the outcome once the
 * records are sealed. The outcome leaves the thread only after the commit.
 */
export type Decision = Refusal | (() => Outcome)

export function findAgent(state: ShardState, group: CommitGroup, name: string): Agent | undefined {
  return group.touched.get(name) ?? state.store.agents.find(name)
}

/** 404 for an agent that does not exist. */
export function noSuchAgent(name: string): Refusal {
  return refuse('agent_not_found', `Agent "${name}" not found`)
}

/** 409 for a write to an agent that is being imported. */
export function importOpen(name: string): Refusal {
  return refuse('import_open', `Agent "${name}" is being imported and does not accept writes yet`)
}

/** 404 for an organism that does not exist. */
export function noSuchOrganism(organismId: string): Refusal {
  return refuse('organism_not_found', `Organism "${organismId}" not found`)
}

/** One turn of a shard: the work between two reads of its mailbox. */
export interface Turn {
  /** The group that is committed at the end of the turn; it is replaced after each `yield`. */
  group: CommitGroup
  /** Whether the time of the turn is used up, so that work that can be split should `yield`. */
  spent(): boolean
  /** Agents whose short writes wait, because they would repeatedly overtake a long write. */
  readonly held: Set<string>
}

/**
 * Work that is split into turns, so that other commands are served between them
 * (docs/adr/0027-turns-of-a-shard.md).
 */
export type Steps<Result> = Generator<undefined, Result, undefined>

export type PreparedWrite = (group: CommitGroup) => Decision
