import { logLevels } from '../base/log.js'
import { type Checked, fields, isNumber, isText, listOf, oneOf } from '../base/shape.js'

/** What the thread of the PostgreSQL sink is started with. */
export const isSinkSettings = fields({
  /** SERVICE_INGEST_POSTGRES_URL, with its password. */
  url: isText,
  dataDir: isText,
  /** How many shards the data directory has. */
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
  /** Ingest records on disk that PostgreSQL does not have yet, as far as they are counted. */
  lagRecords: number
  /** Age of the oldest block that may contain one, seconds; 0 when there is none. */
  lagSecs: number
  /** Rows that were new to PostgreSQL. */
  rows: number
  /** Rows that PostgreSQL refused. */
  deadLetters: number
  /** Tries that failed because PostgreSQL could not be reached or returned an error. */
  failures: number
}

/** What the front thread tells the sink: do not use the store of a shard, use it again, or stop. */
export type SinkOrder = { kind: 'pause' | 'resume'; shard: number } | { kind: 'stop' }
