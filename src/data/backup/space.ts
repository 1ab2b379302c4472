import { statSync } from 'node:fs'
import { isFileSystemError } from '../../base/durable-file.js'
import { limits } from '../../base/limits/limits.js'
import { freeBytes } from '../directory.js'
import type { StorePool } from '../../dispatch/pools/store-pool.js'
import type { ShardCopy } from '../../protocol/store-tasks.js'
import { mebibytes } from './stores.js'

/*
 * The free space that a backup needs and leaves (docs/adr/0020-backup.md). While a copy reads its snapshots,
 * the stores cannot reuse their pages, so the files of a writing server grow.
 */

/** A data directory, and the free space below which its server is read-only (0: never). */
export interface BackupSource {
  dataDir: string
  freeBytesMin: number
}

/**
 * Why there is not enough free space for a copy of at most `bytes`.
 * @returns undefined if there is enough
 */
export function spaceFault(target: string, bytes: number, source: BackupSource): string | undefined {
  const shared = statSync(target).dev === statSync(source.dataDir).dev
  const needed = bytes + limits.backupTargetSpareBytes + (shared ? reservedBytes(source) : 0)
  const free = freeBytes(target)
  if (free >= needed) return undefined
  return `The copy at ${target} needs ${mebibytes(needed)} of free space, but only ${mebibytes(free)} are free`
}

/** Flushes the shards of a running server. */
export interface Flush {
  /**
   * Makes every shard bring its store up to its log, all at the same time. A write that one shard caused in
   * another is included if it came before the request.
   * @param rest whether the shards then pause writes until `resume`, or for a second
   * @returns the last segment in each store
   */
  all(rest: boolean): Promise<number[]>
  resume(): void
}

/**
 * Copies stores as of one moment, and stops when free space runs low on the disk of the source or the target.
 * @throws Error that names the full disk; any error of the copy
 */
export async function copyWithinSpace(
  pool: StorePool,
  { source, ...stores }: Stores & { source: BackupSource },
): Promise<ShardCopy[]> {
  let low = lowSpace(stores.to, source)
  if (low !== undefined) throw new Error(low)
  const timer = setInterval(() => {
    low ??= lowSpace(stores.to, source)
    if (low !== undefined) pool.stop()
  }, limits.backupSpaceMs)
  let copies: ShardCopy[]
  try {
    copies = await copyStores(pool, stores)
  } catch (error) {
    if (low === undefined) throw error
    throw new Error(low, { cause: error })
  } finally {
    clearInterval(timer)
  }
  // A quick copy ends between two looks, and nothing is left of one whose directory was removed.
  low ??= lowSpace(stores.to, source)
  if (low !== undefined) throw new Error(low)
  return copies
}

interface Stores {
  from: string[]
  to: string[]
  flush?: Flush | undefined
}

async function copyStores(pool: StorePool, { from, to, flush }: Stores): Promise<ShardCopy[]> {
  if (flush === undefined) return await pool.copy(from, to)
  for (let tries = 0; tries < limits.backupFlushTries; tries++) {
    // The first try pauses no writes. Under a heavy load of writes or erasures, a store never stays
    // unchanged long enough.
    const rest = tries > 0
    try {
      const segments = await flush.all(rest)
      const copies = await pool.copy(from, to, { segments, taken: () => rest && flush.resume() })
      if (copies.length > 0) return copies
    } finally {
      if (rest) flush.resume()
    }
  }
  throw new Error('The stores changed during every attempt to copy them: try again under less load')
}

/** Why the copy must be stopped. An interrupted command has already removed its directory. */
function lowSpace(to: readonly string[], source: BackupSource): string | undefined {
  try {
    return lowSpaceNow(to[0] ?? source.dataDir, source)
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return `The copy was stopped, because free space cannot be read: ${error.message}`
  }
}

function lowSpaceNow(target: string, source: BackupSource): string | undefined {
  const free = freeBytes(source.dataDir)
  if (free < reservedBytes(source))
    return `The copy was stopped, so that the server can continue to write: ${mebibytes(free)} are free on the disk of ${source.dataDir}`
  const freeAtTarget = freeBytes(target)
  if (freeAtTarget < limits.backupTargetSpareBytes / 2)
    return `The copy was stopped, because its disk is almost full: ${mebibytes(freeAtTarget)} are free at ${target}`
  return undefined
}

/** A quarter above the limit, so that the backup stops before the server becomes read-only. */
function reservedBytes({ freeBytesMin }: BackupSource): number {
  return Math.ceil(freeBytesMin * 1.25)
}
