import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { restoringFile, rootKeyFile, seedFile, shardDirectory } from '../directory.js'
import type { StorePool } from '../../dispatch/pools/store-pool.js'
import type { ProgressPart } from '../../base/progress.js'
import { unfinishedSuffix } from '../../base/durable-file.js'
import { formatFile } from '../format.js'
import { authorityFile } from '../license-authority.js'
import type { ShardCheck } from '../../protocol/store-tasks.js'
import { restoredFile } from '../restored-marker.js'
import type { BackupManifest } from '../../wire/backup-manifest.js'

/* Common parts of `strandfast backup` and `restore` (docs/adr/0020-backup.md). */

export interface StoreWork {
  pool: StorePool
  show(part: ProgressPart): void
  /** Aborts when the user interrupts; then the pool is stopped too. */
  signal: AbortSignal
}

/**
 * The result of a backup or a restore. `usage` faults are in the arguments or settings, `found` faults in the
 * data.
 */
export type StoreOutcome =
  | { ok: true; manifest: BackupManifest }
  | { ok: false; because: 'usage' | 'found'; details: string[] }

/** The manifest of a backup, which is written last. */
export const manifestFile = 'manifest.json'

/** The path of a shard's data file in a data directory or a backup. */
export function storeFile(shard: number): string {
  return `${shardDirectory(shard)}/data.mdb`
}

/** Files with secrets, which a backup contains if the data directory has them. */
export const secretFiles: readonly string[] = [seedFile, rootKeyFile, authorityFile]

/**
 * An entry of a directory that should be empty. New volumes have lost+found or hidden files, which are
 * ignored.
 */
export function nameWithin(path: string, ignored: readonly string[] = []): string | undefined {
  return readdirSync(path).find(
    (name) => name !== 'lost+found' && !name.startsWith('.') && !ignored.includes(name),
  )
}

/** Removes all files of a backup or a restore from a directory; the file that identifies it comes last. */
export function discardFilled(path: string): void {
  for (const name of readdirSync(path)) {
    if (/^shard-\d+(\.building)?$/.test(name)) rmSync(join(path, name), { recursive: true, force: true })
  }
  const whole = [formatFile, manifestFile, restoredFile, ...secretFiles, restoringFile]
  for (const name of [...whole.map((one) => one + unfinishedSuffix), ...whole]) {
    rmSync(join(path, name), { force: true })
  }
}

/**
 * Checks every strand of every store, and computes the root over the chain heads.
 * @param paths the stores in order of shards
 * @param records the expected number of records
 */
export async function checkStores(
  paths: readonly string[],
  records: number,
  { pool, show }: StoreWork,
): Promise<{ checks: ShardCheck[]; headsRoot: string; faults: string[] }> {
  const verified = () => ({ done: Math.floor(pool.done / 2), total: records })
  show({ doing: 'verified', unit: 'records', state: verified })
  const checks = await pool.check(paths)
  const faults = checks.flatMap((check) => check.faults)
  if (faults.length > 0) return { checks, headsRoot: '', faults }
  const agents = checks.reduce((sum, check) => sum + check.agents, 0)
  show({ doing: 'hashed the heads of', unit: 'agents', state: () => ({ done: pool.done, total: agents }) })
  const headsRoot = await pool.headsRoot(paths)
  // Reading leaves unneeded lock files of LMDB.
  for (const path of paths) rmSync(join(path, 'lock.mdb'), { force: true })
  return { checks, headsRoot, faults }
}

export function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_048_576)} MiB`
}
