import { statSync } from 'node:fs'
import { isFileSystemError } from '../../base/durable-file.js'
import { limits } from '../../base/limits/limits.js'
import { freeBytes } from '../directory.js'
import type { StorePool } from '../../dispatch/pools/store-pool.js'
import type { ShardCopy } from '../../protocol/store-tasks.js'
import { mebibytes } from './stores.js'

/*
 * Free space that a backup needs and leaves (docs/adr/0020-backup.md). While it reads its snapshots, the stores cannot
 * reuse pages of these snapshots, so the files of a server that writes grow.
 */

/** A data directory, and the free space below which its server only reads (0: never). */
export interface BackedUp {
  dataDir: string
  freeBytesMin: number
}

/**
 * Why there is no room for a copy, which takes at most `bytes`.
 * @returns undefined where there is room
 */
export function spaceFault(target: string, bytes: number, source: BackedUp): string | undefined {
  const shared = statSync(target).dev === statSync(source.dataDir).dev
  const needed = bytes + limits.backupTargetSpareBytes + (shared ? leftToServer(source) : 0)
  const free = freeBytes(target)
  if (free >= needed) return undefined
  return `Expected ${mebibytes(needed)} of free space for the copy at ${target}, got ${mebibytes(free)}`
}

/** What the shards of a running server are asked for. */
export interface Flush {
  /**
   * Has every shard bring its store up to its log, all asked at once: whatever a shard has written by then because of
   * another one, that one has written before it was asked.
   * @param rest whether the shards then rest until `goOn`, or a second
   * @returns the last segment that each store has
   */
  all(rest: boolean): Promise<number[]>
  goOn(): void
}

/**
 * Copies stores as they are at one moment, and gives up when free space runs low on the disk of the source or the
 * target.
 * @throws Error that says which disk is low; whatever the copying throws
 */
export async function copyWithinSpace(
  pool: StorePool,
  { from, to, source, flush }: { from: string[]; to: string[]; source: BackedUp; flush?: Flush },
): Promise<ShardCopy[]> {
  let low = lowSpace(to, source)
  if (low !== undefined) throw new Error(low)
  const timer = setInterval(() => {
    low ??= lowSpace(to, source)
    if (low !== undefined) pool.stop()
  }, limits.backupSpaceMs)
  try {
    if (flush === undefined) return await pool.copy(from, to)
    for (let tries = 0; tries < limits.backupFlushTries; tries++) {
      // Most often nobody has to wait for a backup. Where much is written, or erased, a store never stays as it is.
      const rest = tries > 0
      try {
        const segments = await flush.all(rest)
        const copies = await pool.copy(from, to, { segments, taken: () => rest && flush.goOn() })
        if (copies.length > 0) return copies
      } finally {
        if (rest) flush.goOn()
      }
    }
    throw new Error('The shards were never seen at rest: try again when less is written')
  } catch (error) {
    if (low === undefined) throw error
    throw new Error(low, { cause: error })
  } finally {
    clearInterval(timer)
  }
}

/** Why the copy has to be given up. A command that was interrupted has removed its directory by then. */
function lowSpace(to: readonly string[], source: BackedUp): string | undefined {
  try {
    return lowSpaceNow(to[0] ?? source.dataDir, source)
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return `Given up, as free space cannot be told: ${error.message}`
  }
}

function lowSpaceNow(target: string, source: BackedUp): string | undefined {
  const free = freeBytes(source.dataDir)
  if (free < leftToServer(source))
    return `Given up, so that the server can go on writing: ${mebibytes(free)} are free on the disk of ${source.dataDir}`
  const freeAtTarget = freeBytes(target)
  if (freeAtTarget < limits.backupTargetSpareBytes / 2)
    return `Given up, as the disk of the copy fills up: ${mebibytes(freeAtTarget)} are free at ${target}`
  return undefined
}

/** A quarter above the mark: the backup is given up before anything else is refused. */
function leftToServer({ freeBytesMin }: BackedUp): number {
  return Math.ceil(freeBytesMin * 1.25)
}
