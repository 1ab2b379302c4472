import type { CommitGroup } from './commit-group.js'
import type { Decision } from './state.js'

/** What a shard does between two looks into its mailbox. */
export interface Turn {
  /** What is decided is committed at the end of the turn: behind each `yield` it is another group. */
  group: CommitGroup
  /** Whether it has lasted long enough: work that can be cut is to `yield`. */
  spent(): boolean
  /** Agents whose short writes wait: a long one that keeps being overtaken by them is about to write. */
  readonly held: Set<string>
}

/** Work that is cut into turns, so that other commands get on meanwhile (docs/adr/0027-turns-of-a-shard.md). */
export type Steps<Result> = Generator<undefined, Result, undefined>

/** Decides what was got ready, all of it in one group. */
export type Ready = (group: CommitGroup) => Decision
