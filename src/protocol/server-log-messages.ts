import type { Hlc } from '../strand/hlc.js'
import type { LoggedHead } from '../strand/server-log.js'
import type { WriteOptions } from './command-options.js'

/*
 * The server log: one strand that tells where all others stand (docs/adr/0023-server-log.md). What goes into it is
 * looked for in every shard; it lies, with what it is searched by, in the shard of its agent.
 */

/** Some heads of a shard that moved after the clock `after`, in commit order. Answered by `heads`. */
interface HeadsMoved {
  kind: 'headsMoved'
  after: Hlc
}

/** The heads of a shard's agents from the number `fromNo` on, moved or not. Answered by `heads`. */
interface HeadsAll {
  kind: 'headsAll'
  fromNo: number
}

/** A head, and the agent whose strand it is of. */
export interface AgentHead extends LoggedHead {
  agent: string
}

/** Looks whether strands still have the records that the log told of. Answered by `headsHeld`. */
interface HeadsHold {
  kind: 'headsHold'
  /** `limits.logRecordHeadsMax` at most. */
  heads: readonly AgentHead[]
}

/** What the log tells of some strands. Answered by `headsTold`. */
interface LogTold {
  kind: 'logTold'
  agent: string
  strands: readonly string[]
}

/** Makes the log where there is none, and some of what it tells findable that is not. Answered by `logOpened`. */
interface LogOpen {
  kind: 'logOpen'
  agent: string
  options: WriteOptions
}

/**
 * Tells of heads in the log, in as many records as it takes, all in one commit; of each strand only what goes further
 * than what was told. Answered by `logAppended`.
 */
interface LogAppend {
  kind: 'logAppend'
  agent: string
  /** For each shard, up to where all of its heads are told once these are. */
  clocks: readonly Hlc[]
  heads: readonly LoggedHead[]
  options: WriteOptions
}

/** The newest head of a strand among the first `size` records of the log. Answered by `headLogged`. */
interface LogFind {
  kind: 'logFind'
  agent: string
  strand: string
  size: number
}

/** Heads of one shard. A strand stands there once; `reached` and `nextNo` are where to go on. */
interface HeadsOutcome {
  kind: 'heads'
  heads: AgentHead[]
  /** Of `headsMoved`: the clock up to which these are all. Of `headsAll`: the last clock of the shard. */
  reached: Hlc
  /** Of `headsAll`: the next agent. */
  nextNo: number
  end: boolean
  /**
   * Of `headsMoved`: the clock before the first block with a record that does not match its checksum. Which strand that
   * moves cannot be said, so behind this clock the heads are not all.
   */
  damagedAfter?: Hlc
}

/** Strands that have not got the records that the log told of: history was changed. */
interface HeadsHeldOutcome {
  kind: 'headsHeld'
  forked: string[]
}

/** The newest heads that the log tells of; of a strand that it does not, none. */
interface HeadsToldOutcome {
  kind: 'headsTold'
  heads: LoggedHead[]
}

/** How the log stands. */
interface LogOpenedOutcome {
  kind: 'logOpened'
  /** Records, genesis counted. */
  size: number
  /** What its last record says; none where there is none yet. */
  clocks: readonly Hlc[]
  /** Whether there is more to be made findable. */
  left: boolean
}

/** The heads are told. */
interface LogAppendedOutcome {
  kind: 'logAppended'
  size: number
  /** Strands whose head is another than the one of the same size that was told before: history was changed. */
  forked: string[]
}

/** A head that the log tells of, and by which of its records. */
interface HeadLoggedOutcome {
  kind: 'headLogged'
  head: LoggedHead
  logSeq: number
}

/** Everything about the server log that a shard can be asked. */
export type ServerLogCommand = HeadsMoved | HeadsAll | HeadsHold | LogTold | LogOpen | LogAppend | LogFind

/** Everything that it can answer to that. */
export type ServerLogOutcome =
  | HeadsHeldOutcome
  | HeadsToldOutcome
  | HeadsOutcome
  | LogOpenedOutcome
  | LogAppendedOutcome
  | HeadLoggedOutcome
