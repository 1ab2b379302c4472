import type { Hlc } from '../strand/hlc.js'
import type { LoggedHead } from '../strand/server-log.js'
import type { WriteOptions } from './command-options.js'

/*
 * The server log: one strand that names the heads of all others (docs/adr/0023-server-log.md). Every shard
 * reports its heads; the log and its index are in the shard of the log's agent.
 */

/** Reads heads of a shard that moved after the clock `after`, in commit order. Answered by `heads`. */
interface HeadsMoved {
  kind: 'headsMoved'
  after: Hlc
}

/** Reads the heads of a shard's agents from the number `fromNo`, moved or not. Answered by `heads`. */
interface HeadsAll {
  kind: 'headsAll'
  fromNo: number
}

export interface AgentHead extends LoggedHead {
  agent: string
}

/** Checks whether strands still have the records that the log names. Answered by `headsChecked`. */
interface HeadsCheck {
  kind: 'headsCheck'
  /** `limits.logRecordHeadsMax` at most. */
  heads: readonly AgentHead[]
}

/** Reads the last logged heads of some strands. Answered by `logHeads`. */
interface LogHeads {
  kind: 'logHeads'
  agent: string
  strands: readonly string[]
}

/**
 * Creates the log if it does not exist, and indexes some records that are not indexed yet. Answered by
 * `logOpened`.
 */
interface LogOpen {
  kind: 'logOpen'
  agent: string
  options: WriteOptions
}

/**
 * Appends heads to the log, in as many records as needed but in one commit. Skips a strand that is not longer
 * than its logged head. Answered by `logAppended`.
 */
interface LogAppend {
  kind: 'logAppend'
  agent: string
  /** For each shard, the clock up to which all its heads are in the log after this append. */
  clocks: readonly Hlc[]
  heads: readonly LoggedHead[]
  options: WriteOptions
}

/** Finds the newest head of a strand among the first `size` records of the log. Answered by `headLogged`. */
interface LogFind {
  kind: 'logFind'
  agent: string
  strand: string
  size: number
}

/** Heads of one shard, one per strand; continue from `reached` or `nextNo`. */
interface HeadsOutcome {
  kind: 'heads'
  heads: AgentHead[]
  /**
   * For `headsMoved`: the clock up to which the heads are complete. For `headsAll`: the last clock of the
   * shard.
   */
  reached: Hlc
  /** For `headsAll`: the next agent. */
  nextNo: number
  end: boolean
  /**
   * For `headsMoved`: the clock before the first block with a record that fails its checksum. Its strand is
   * unknown, so the heads after this clock are incomplete.
   */
  damagedAfter?: Hlc
}

/** The strands that lack records which the log names: their history was changed. */
interface HeadsCheckedOutcome {
  kind: 'headsChecked'
  forked: string[]
}

/** The last logged heads; none for a strand that the log does not name. */
interface LoggedHeadsOutcome {
  kind: 'logHeads'
  heads: LoggedHead[]
}

interface LogOpenedOutcome {
  kind: 'logOpened'
  /** Records, genesis counted. */
  size: number
  /** The clocks of its last record; empty for a new log. */
  clocks: readonly Hlc[]
  /** Whether more records need to be indexed. */
  left: boolean
}

interface LogAppendedOutcome {
  kind: 'logAppended'
  size: number
  /** The strands whose head differs from the logged head of the same size: their history was changed. */
  forked: string[]
}

/** A head in the log, and the record that names it. */
interface HeadLoggedOutcome {
  kind: 'headLogged'
  head: LoggedHead
  logSeq: number
}

export type ServerLogCommand = HeadsMoved | HeadsAll | HeadsCheck | LogHeads | LogOpen | LogAppend | LogFind

export type ServerLogOutcome =
  | HeadsCheckedOutcome
  | LoggedHeadsOutcome
  | HeadsOutcome
  | LogOpenedOutcome
  | LogAppendedOutcome
  | HeadLoggedOutcome
