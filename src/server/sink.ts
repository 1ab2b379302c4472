import { createHash } from 'node:crypto'
import { assert } from '../base/assert.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import { SinkThread } from '../dispatch/sink-thread.js'
import { readFormat, type Format } from '../data-directory/format.js'

/** The PostgreSQL sink, where it is set up. */
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
 * Tells data directories apart that deliver into one database, even of one master seed; 32 hex digits, no secret.
 * A directory whose strands were moved to other shards counts as another: its logs are others, and a place in an old one
 * could happen to look right in a new one (docs/adr/0021-resharding.md).
 */
export function storeName({ masterSeedFingerprint, createdAtMs, layout }: Format): string {
  const moved = layout > 0 ? ` ${layout}` : ''
  return createHash('sha256')
    .update(`${masterSeedFingerprint} ${createdAtMs}${moved}`)
    .digest('hex')
    .slice(0, 32)
}
