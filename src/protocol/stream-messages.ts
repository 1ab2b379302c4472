import type { Hlc } from '../strand/hlc.js'
import type { RecordPosition } from '../strand/record-position.js'

/* Messages about events for streams. */

/** Reads a page of a strand for a stream, from `fromSeq` or from the first record at or after `since`. */
export interface StreamPage {
  kind: 'streamPage'
  agent: string
  fromSeq: number
  since?: Hlc
  types?: string[]
  limit: number
}

/** Reads a page of the whole shard in log order, after `after`. */
export interface LogPage {
  kind: 'logPage'
  after: RecordPosition
  /**
   * Positions of cursors from before a reshard, one list per former number of shards; records up to them are
   * skipped.
   */
  seen?: readonly RecordPosition[][]
  agents?: string[]
  types?: string[]
  limit: number
}

/** Starts or stops sending commits of `agent` (empty: of all agents) as events. Answered by `watching`. */
export interface Watch {
  kind: 'watch'
  agent: string
  on: boolean
  /** The number of the front at the receiving thread; set by the link. */
  front: number
}

/** Events for one stream. `end`: they reach the last commit, so the next one arrives as an event. */
export interface PageOutcome {
  kind: 'page'
  events: StreamEvent[]
  /** The seq of the next page, after skipped events. */
  nextSeq: number
  reached: Hlc
  end: boolean
}

/** The HLC of the shard's last record when watching begins. */
export interface WatchingOutcome {
  kind: 'watching'
  reached: Hlc
}

/** A committed record for streams. `data` is the wire JSON of the event. */
export interface StreamEvent {
  agent: string
  seq: number
  hlc: string
  /** Distinguishes records of its shard with the same HLC (src/strand/record-position.ts). */
  tie?: string
  /** Set for `sys/*` and `edge/*`, which only streams that name them show. */
  isSystem?: true
  data: string
}

export type StreamCommand = StreamPage | LogPage | Watch

export type StreamOutcome = PageOutcome | WatchingOutcome
