import { createHash } from 'node:crypto'
import { assert } from './base/assert.js'
import type { Logger } from './base/log.js'
import type { Config } from './config.js'
import { readFormat, type DataDirectory } from './data-directory.js'
import { SinkThread } from './dispatch/sink-thread.js'

/** Starts the PostgreSQL sink, where it is set up. The stores are open already: its own view of them needs their tables. */
export function startSink(
  { ingestPostgresUrl, logLevel }: Config,
  directory: DataDirectory,
  log: Logger,
): SinkThread | undefined {
  if (ingestPostgresUrl === undefined) return undefined
  const settings = {
    url: ingestPostgresUrl,
    dataDir: directory.path,
    shards: directory.shards,
    store: storeName(directory.path),
    logLevel,
  }
  return new SinkThread(settings, (error) => log.error({ err: error }, 'the PostgreSQL sink ended'))
}

/** Tells data directories apart that deliver into one database, even of one master seed; 32 hex digits, no secret. */
function storeName(path: string): string {
  const format = readFormat(path)
  assert(typeof format === 'object', 'an open data directory has its format')
  const { masterSeedFingerprint, createdAtMs } = format
  return createHash('sha256').update(`${masterSeedFingerprint} ${createdAtMs}`).digest('hex').slice(0, 32)
}
