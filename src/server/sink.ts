import { createHash } from 'node:crypto'
import { assert } from '../base/assert.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import type { DataDirectory } from '../data/directory.js'
import { SinkThread } from '../dispatch/pools/sink-thread.js'
import { readFormat, type Format } from '../data/format.js'

/** The PostgreSQL sink, if it is configured. */
export function makeSink(
  { ingestPostgresUrl, logLevel }: Config,
  directory: DataDirectory,
  log: Logger,
): SinkThread | undefined {
  if (ingestPostgresUrl === undefined) return undefined
  const settings = {
    url: ingestPostgresUrl,
    dataDir: directory.path,
    shards: directory.shards,
    store: storeName(formatOf(directory.path)),
    logLevel,
  }
  return new SinkThread(settings, (error) => log.error({ err: error }, 'the PostgreSQL sink ended'))
}

function formatOf(path: string): Format {
  const format = readFormat(path)
  assert(typeof format === 'object', 'an open data directory has its format')
  return format
}

/**
 * Identifies a data directory among those that deliver to one database, even with the same master seed; 32 hex digits,
 * not a secret. A directory whose strands were moved to other shards counts as a new one: its logs are different, and a
 * place in an old log could look right in a new one by chance (docs/adr/0021-resharding.md).
 */
export function storeName({ masterSeedFingerprint, createdAtMs, layout }: Format): string {
  const moved = layout > 0 ? ` ${layout}` : ''
  return createHash('sha256')
    .update(`${masterSeedFingerprint} ${createdAtMs}${moved}`)
    .digest('hex')
    .slice(0, 32)
}
