import { refuse, type Refusal } from '../../src/base/errors.js'
import type { RandomBytes } from '../../src/base/random.js'
import type { Clock } from '../../src/base/clock.js'
import type { AuthRules } from '../../src/protocol/auth-messages.js'
import type { Outcome } from '../../src/protocol/messages.js'
import type { Signing } from '../../src/protocol/command-options.js'
import type { ProposalRules } from '../../src/protocol/proposal-messages.js'
import type { CommitGroup } from './commit-group.js'
import type { Watched } from './front-frames.js'
import type { Agent } from '../store/tables/agent.js'
import type { ShardStore } from '../store/shard-store.js'

/** What commands work on: the shard's store and settings, its clock and its source of randomness. */
export interface ShardState {
  shard: number
  store: ShardStore
  clock: Clock
  /** Milliseconds by a clock that never jumps, by which turns end. */
  steadyClock: Clock
  random: RandomBytes
  masterSeed: Uint8Array
  recordBytesMax: number
  signing: Signing
  auth: AuthRules
  proposals: ProposalRules
  /** 32 bytes: the key of the HMACs that stand for e-mails in audit records. */
  emailHmacKey: Uint8Array
  /** Agents whose commits are sent to fronts as events, and to which. */
  watched: Watched
  /** A heartbeat, after each step of work: a thread without one for long is considered hung. */
  beat(): void
}

/**
 * What a write command decided: a refusal (nothing was appended), or a function that makes its outcome once its records
 * are sealed. The outcome leaves the thread only after the commit.
 */
export type Decision = Refusal | (() => Outcome)

/** The agent as this group sees it: changed by the group, in memory, or on disk. */
export function findAgent(state: ShardState, group: CommitGroup, name: string): Agent | undefined {
  return group.touched.get(name) ?? state.store.agents.find(name)
}

/** 404 for an agent that does not exist. */
export function noSuchAgent(name: string): Refusal {
  return refuse('agent_not_found', `Expected the name of an agent that exists, got "${name}"`)
}

/** 409 for a write to an agent that is being imported. */
export function importOpen(name: string): Refusal {
  return refuse('import_open', `Expected an agent whose import is at its end, got "${name}"`)
}

/** 404 for an organism that does not exist. */
export function noSuchOrganism(organismId: string): Refusal {
  return refuse('organism_not_found', `Expected the id of an organism that exists, got "${organismId}"`)
}

/** One turn: what a shard does between two looks into its mailbox. */
export interface Turn {
  /** The group that is committed at the end of the turn; after each `yield` it is another one. */
  group: CommitGroup
  /** Whether the turn has lasted long enough: work that can be split should `yield`. */
  spent(): boolean
  /** Agents whose short writes wait, because they would keep overtaking a long write that is about to be written. */
  readonly held: Set<string>
}

/** Work that is split into turns, so that other commands are served in between (docs/adr/0027-turns-of-a-shard.md). */
export type Steps<Result> = Generator<undefined, Result, undefined>

/** A long write that has begun. `bytes`: of its body. */
export interface Begun {
  id: number
  steps: Steps<Decision>
  bytes: number
}

/** Decides what was prepared, all of it in one group. */
export type Ready = (group: CommitGroup) => Decision
