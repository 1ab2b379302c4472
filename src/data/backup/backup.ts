import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { copyWithinSpace, spaceFault } from './space.js'
import { requestCopy } from './control-client.js'
import { shardDirectory } from '../directory.js'
import { type FileDigest, copyFile, digestFile } from './digested-file.js'
import { lockDirectory } from '../lock.js'
import { distrustOf } from '../trust.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfExists,
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

export interface BackupRequest {
  dataDir: string
  /** The free space below which a server is read-only, bytes. */
  freeBytesMin: number
  /** The directory of the backup, absent or empty. */
  target: string
  /** Whether the existing master seed, root key and license authority are copied. */
  secrets: boolean
  /** Unix milliseconds. */
  nowMs: number
}

/**
 * Copies a data directory, with or without a running server, checks every strand of the copy and writes a
 * manifest (docs/adr/0020-backup.md). After a failure or an interrupt, nothing is left.
 */
export async function backUp(request: BackupRequest, work: StoreWork): Promise<StoreOutcome> {
  const target = resolve(request.target)
  const distrusted = distrustOf(request.dataDir)
  if (distrusted !== undefined) return usage(distrusted)
  const format = readFormat(request.dataDir)
  if (typeof format === 'string') return usage(format)
  if (format === undefined)
    return usage(`The directory ${request.dataDir} is not a data directory: it has no ${formatFile}`)
  if (format.cluster !== undefined)
    return usage(
      `The directory ${request.dataDir} belongs to a node of the cluster ${format.cluster}: back up the cluster with strandfast cluster pull`,
    )
  if (`${target}${sep}`.startsWith(`${resolve(request.dataDir)}${sep}`)) {
    return usage('Expected DIR to be outside of the data directory')
  }
  let isNew = false
  try {
    isNew = makeDirectory(target)
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
      if (isNew) rmSync(target, { recursive: true, force: true })
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
    return found([`The data directory ${dataDir} was replaced during the copy: run the backup again`])
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
    files: await copyAndHash(request, files, work),
    heads_root: headsRoot,
  }
  for (const path of paths) syncDirectory(path)
  syncDirectory(target)
  // Last, because a directory without it is not a backup.
  work.signal.throwIfAborted()
  writeDurably(join(target, manifestFile), renderBackupManifest(manifest))
  return { ok: true, manifest }
}

/** Copies the stores: by the server that holds the lock, or in this process if it is free. */
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
    return await requestCopy(dataDir, to, { signal, onBytes: (bytes) => void (done = bytes) })
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    const holder = locking.holder === undefined ? 'another process' : `process ${locking.holder}`
    throw new Error(
      `The data directory ${dataDir} is in use by ${holder}, which accepts no requests: ${error.message}`,
      {
        cause: error,
      },
    )
  }
}

/** Bytes of the stores, the upper limit of a copy. */
function bytesOf(dataDir: string, shards: number): number {
  let bytes = 0
  for (let shard = 0; shard < shards; shard++) bytes += statSync(join(dataDir, storeFile(shard))).size
  return bytes
}

/** Copies the files beside the stores, and hashes every file. */
async function copyAndHash(
  { dataDir, target }: BackupRequest,
  files: readonly string[],
  { show, signal }: StoreWork,
): Promise<BackupManifest['files']> {
  const hashed: BackupManifest['files'] = []
  let done = 0
  const total = files.reduce(
    (sum, path) => sum + sizeOf(path.includes('/') ? join(target, path) : join(dataDir, path)),
    0,
  )
  show({ doing: 'hashed', unit: 'bytes', state: () => ({ done, total }) })
  const reading = { signal, onBytes: (bytes: number) => void (done += bytes) }
  for (const path of files) {
    const digest = await copyOrHash(join(dataDir, path), join(target, path), { reading, path })
    if (digest !== undefined) hashed.push({ path, ...digest })
  }
  return hashed
}

/** Bytes of a file; 0 if it does not exist. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

async function copyOrHash(
  from: string,
  to: string,
  { reading, path }: { reading: Parameters<typeof digestFile>[1]; path: string },
): Promise<FileDigest | undefined> {
  if (path.includes('/')) return digestFile(to, reading)
  return readIfExists(from) === undefined ? undefined : copyFile(from, to, reading)
}

function usage(detail: string): StoreOutcome {
  return { ok: false, because: 'usage', details: [detail] }
}

function found(details: string[]): StoreOutcome {
  return { ok: false, because: 'found', details }
}
