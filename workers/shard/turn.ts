import type { CommitGroup } from './commit-group.js'
import type { Decision } from './state.js'

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
