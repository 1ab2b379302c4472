import type { Hlc } from '../strand/hlc.js'
import type { LoggedHead } from '../strand/server-log.js'
import type { WriteOptions } from './command-options.js'

/*
 * The server log: one strand that names the heads of all others (docs/adr/0023-server-log.md). Every shard is asked for
 * its heads; the log and its index are in the shard of its agent.
 */

/** Some heads of a shard that moved after the clock `after`, in commit order. Answered by `heads`. */
interface HeadsMoved {
  kind: 'headsMoved'
  after: Hlc
}

/** The heads of a shard's agents from the number `fromNo`, moved or not. Answered by `heads`. */
interface HeadsAll {
  kind: 'headsAll'
  fromNo: number
}

/** A head, and the agent of its strand. */
export interface AgentHead extends LoggedHead {
  agent: string
}

/** Checks whether strands still have the records that the log names. Answered by `headsHeld`. */
interface HeadsHold {
  kind: 'headsHold'
  /** `limits.logRecordHeadsMax` at most. */
  heads: readonly AgentHead[]
}

/** Reads the heads of some strands in the log. Answered by `headsTold`. */
interface LogTold {
  kind: 'logTold'
  agent: string
  strands: readonly string[]
}

/**
 * Makes the log if there is none, and indexes some of its records that are not indexed yet. Answered by `logOpened`.
 */
interface LogOpen {
  kind: 'logOpen'
  agent: string
  options: WriteOptions
}

/**
 * Writes heads to the log, in as many records as needed, all in one commit; for each strand only if it is longer than
 * the log says. Answered by `logAppended`.
 */
interface LogAppend {
  kind: 'logAppend'
  agent: string
  /** For each shard, the clock up to which all its heads are in the log after this. */
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

/** Heads of one shard, one for each strand; `reached` and `nextNo` say where to continue. */
interface HeadsOutcome {
  kind: 'heads'
  heads: AgentHead[]
  /** For `headsMoved`: the clock up to which these are all. For `headsAll`: the last clock of the shard. */
  reached: Hlc
  /** For `headsAll`: the next agent. */
  nextNo: number
  end: boolean
  /**
   * For `headsMoved`: the clock before the first block with a record that does not match its checksum. Nobody knows
   * which strand that record belongs to, so the heads after this clock are not complete.
   */
  damagedAfter?: Hlc
}

/** Strands that do not have the records that the log names: history was changed. */
interface HeadsHeldOutcome {
  kind: 'headsHeld'
  forked: string[]
}

/** The newest heads in the log; none for a strand that it does not name. */
interface HeadsToldOutcome {
  kind: 'headsTold'
  heads: LoggedHead[]
}

/** The state of the log. */
interface LogOpenedOutcome {
  kind: 'logOpened'
  /** Records, genesis counted. */
  size: number
  /** What its last record says; none where there is none yet. */
  clocks: readonly Hlc[]
  /** Whether there are more records to index. */
  left: boolean
}

/** The heads are in the log. */
interface LogAppendedOutcome {
  kind: 'logAppended'
  size: number
  /** Strands whose head differs from the one of the same size in the log: history was changed. */
  forked: string[]
}

/** A head in the log, and the record that names it. */
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
