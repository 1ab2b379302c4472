import { logLevels } from '../base/log.js'
import { type Checked, fields, isNumber, isText, listOf, oneOf } from '../base/shape.js'

/** The settings of the PostgreSQL sink thread. */
export const isSinkSettings = fields({
  /** SERVICE_INGEST_POSTGRES_URL, with its password. */
  url: isText,
  dataDir: isText,
  /** The number of shards of the data directory. */
  shards: isNumber,
  /** Shards that do not serve at the start. */
  paused: listOf(isNumber),
  /** Identifies the data directory among those that deliver to one database. */
  store: isText,
  logLevel: oneOf(...logLevels),
})
export type SinkSettings = Checked<typeof isSinkSettings>

/** Figures of the sink since its thread started. */
export interface SinkFigures {
  connected: boolean
  /** Known ingest records on disk that PostgreSQL does not have yet. */
  lagRecords: number
  /** The age of the oldest block that may contain one, seconds; 0 when there is none. */
  lagSecs: number
  /** Rows that were new to PostgreSQL. */
  rows: number
  /** Rows that PostgreSQL refused. */
  deadLetters: number
  /** Failed attempts: PostgreSQL was unreachable or returned an error. */
  failures: number
}

/** An order to the sink: close the store of a shard, use it again, or stop. */
export type SinkOrder = { kind: 'pause' | 'resume'; shard: number } | { kind: 'stop' }
