import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { copyWithinSpace, spaceFault } from './space.js'
import { askForCopy } from './control-client.js'
import { shardDirectory } from '../directory.js'
import { type FileDigest, copyFile, digestFile } from './digested-file.js'
import { lockDirectory } from '../lock.js'
import { distrustOf } from '../trust.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfThere,
  syncDirectory,
  writeDurably,
} from '../../base/durable-file.js'
import { type Format, formatFile, readFormat } from '../format.js'
import type { ShardCopy } from '../../protocol/store-tasks.js'
import {
  type StoreOutcome,
  type StoreWork,
  checkStores,
  discardFilled,
  manifestFile,
  nameWithin,
  secretFiles,
  storeFile,
} from './stores.js'
import { version } from '../../base/version.js'
import { type BackupManifest, backupFormat, renderBackupManifest } from '../../wire/backup-manifest.js'

/** A request for a backup. */
export interface BackupRequest {
  dataDir: string
  /** Free space of its disk below which a server only reads, bytes. */
  freeBytesMin: number
  /** The directory for it, absent or empty. */
  target: string
  /** Whether master seed, root key and license authority are copied, where the data directory has them. */
  secrets: boolean
  /** Unix milliseconds. */
  nowMs: number
}

/**
 * Copies a data directory, whether a server runs on it or not, checks every strand of the copy and writes a manifest
 * (docs/adr/0020-backup.md). If it fails or is interrupted, nothing is left of it.
 */
export async function backUp(request: BackupRequest, work: StoreWork): Promise<StoreOutcome> {
  const target = resolve(request.target)
  const distrusted = distrustOf(request.dataDir)
  if (distrusted !== undefined) return usage(distrusted)
  const format = readFormat(request.dataDir)
  if (typeof format === 'string') return usage(format)
  if (format === undefined)
    return usage(`The directory ${request.dataDir} is no data directory: it has no ${formatFile}`)
  if (format.cluster !== undefined)
    return usage(
      `The directory ${request.dataDir} is a copy of the cluster ${format.cluster}: back that up by strandfast cluster pull`,
    )
  if (`${target}${sep}`.startsWith(`${resolve(request.dataDir)}${sep}`)) {
    return usage('Expected DIR to be outside of the data directory')
  }
  let made = false
  try {
    made = makeDirectory(target)
    const name = nameWithin(target)
    if (name !== undefined) return usage(`Expected ${target} to be absent or empty: it holds ${name}`)
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return usage(`The directory ${target} cannot be used: ${error.message}`)
  }
  let outcome: StoreOutcome | undefined
  try {
    outcome = await fill({ ...request, target }, format, work)
    return outcome
  } finally {
    if (outcome?.ok !== true) {
      discardFilled(target)
      if (made) rmSync(target, { recursive: true, force: true })
    }
  }
}

async function fill(request: BackupRequest, format: Format, work: StoreWork): Promise<StoreOutcome> {
  const { dataDir, target } = request
  const shards = Array.from({ length: format.shards }, (_none, shard) => shard)
  const paths = shards.map((shard) => join(target, shardDirectory(shard)))
  const noSpace = spaceFault(target, bytesOf(dataDir, format.shards), request)
  if (noSpace !== undefined) return found([noSpace])
  for (const path of paths) mkdirSync(path, { mode: 0o700 })
  const copies = await copyShards(request, paths, work)
  const again = readFormat(dataDir)
  if (JSON.stringify(again) !== JSON.stringify(format)) {
    return found([`The data directory ${dataDir} was replaced while it was copied: begin again`])
  }
  const records = copies.reduce((sum, copy) => sum + copy.records, 0)
  const { checks, headsRoot, faults } = await checkStores(paths, records, work)
  if (faults.length > 0) return found(faults)
  const files = [...shards.map(storeFile), formatFile, ...(request.secrets ? secretFiles : [])]
  const manifest: BackupManifest = {
    format: backupFormat,
    version,
    created_at_ms: request.nowMs,
    source: {
      created_at_ms: format.createdAtMs,
      master_seed_fingerprint: format.masterSeedFingerprint,
    },
    shards: checks.map(({ agents, records, lastHlc }) => ({ agents, records, last_hlc: lastHlc })),
    files: await takeFiles(request, files, work),
    heads_root: headsRoot,
  }
  for (const path of paths) syncDirectory(path)
  syncDirectory(target)
  // Last, since a directory without it is not a backup.
  work.signal.throwIfAborted()
  writeDurably(join(target, manifestFile), renderBackupManifest(manifest))
  return { ok: true, manifest }
}

/** Copies the stores: by the server that has locked the data directory, or here if none has. */
async function copyShards(
  source: BackupRequest,
  to: string[],
  { pool, show, signal }: StoreWork,
): Promise<ShardCopy[]> {
  const { dataDir } = source
  const from = to.map((_path, shard) => join(dataDir, shardDirectory(shard)))
  const mostBytes = bytesOf(dataDir, to.length)
  const locking = lockDirectory(dataDir)
  if (locking.ok) {
    show({ doing: 'copied', unit: 'bytes', state: () => ({ done: pool.done, total: mostBytes }) })
    try {
      return await copyWithinSpace(pool, { from, to, source })
    } finally {
      locking.release()
    }
  }
  let done = 0
  show({ doing: 'copied', unit: 'bytes', state: () => ({ done, total: mostBytes }) })
  try {
    return await askForCopy(dataDir, to, { signal, onBytes: (bytes) => void (done = bytes) })
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    const holder = locking.holder === undefined ? 'another process' : `process ${locking.holder}`
    throw new Error(
      `The data directory ${dataDir} is in use by ${holder}, which takes no request: ${error.message}`,
      {
        cause: error,
      },
    )
  }
}

/** Bytes of the stores, which is the most that a copy takes. */
function bytesOf(dataDir: string, shards: number): number {
  let bytes = 0
  for (let shard = 0; shard < shards; shard++) bytes += statSync(join(dataDir, storeFile(shard))).size
  return bytes
}

/** Copies the files beside the stores, and computes the digest of every file. */
async function takeFiles(
  { dataDir, target }: BackupRequest,
  files: readonly string[],
  { show, signal }: StoreWork,
): Promise<BackupManifest['files']> {
  const taken: BackupManifest['files'] = []
  let done = 0
  const total = files.reduce(
    (sum, path) => sum + sizeOf(path.includes('/') ? join(target, path) : join(dataDir, path)),
    0,
  )
  show({ doing: 'took the digest of', unit: 'bytes', state: () => ({ done, total }) })
  const reading = { signal, onBytes: (bytes: number) => void (done += bytes) }
  for (const path of files) {
    const digest = await takeFile(join(dataDir, path), join(target, path), { reading, path })
    if (digest !== undefined) taken.push({ path, ...digest })
  }
  return taken
}

/** Bytes of a file; none where it is absent. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

async function takeFile(
  from: string,
  to: string,
  { reading, path }: { reading: Parameters<typeof digestFile>[1]; path: string },
): Promise<FileDigest | undefined> {
  if (path.includes('/')) return digestFile(to, reading)
  return readIfThere(from) === undefined ? undefined : copyFile(from, to, reading)
}

function usage(detail: string): StoreOutcome {
  return { ok: false, because: 'usage', details: [detail] }
}

function found(details: string[]): StoreOutcome {
  return { ok: false, because: 'found', details }
}
