import { existsSync, lstatSync, mkdirSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { RandomBytes } from '../../base/random.js'
import { isSeedOf, restoringFile, seedFile, shardDirectory } from '../directory.js'
import { copyFile, readSmall } from './digested-file.js'
import { lockDirectory } from '../lock.js'
import { distrust } from '../trust.js'
import { isFileSystemError, makeDirectory, syncDirectory } from '../../base/durable-file.js'
import { type Format, formatFile, readFormat, writeFormat } from '../format.js'
import { writeRestoredMarker } from '../restored-marker.js'
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
import { type BackupManifest, parseBackupManifest } from '../../wire/backup-manifest.js'

export interface RestoreRequest {
  source: string
  /** The new data directory, absent or empty. */
  dataDir: string
  /** The master seed, if it is set by a setting. */
  masterSeed: Buffer | undefined
  random: RandomBytes
}

/** Random bytes of an era: few enough that eight thousand restores in a row fit into a number. */
const ERA_BYTES = 5

type RestoreFailure = Extract<StoreOutcome, { ok: false }>

/**
 * Creates a data directory from a backup. Every file must match the manifest, and every strand of the copy
 * must verify (docs/adr/0020-backup.md). After a failure or an interrupt, nothing is left. After a kill, a
 * directory is left on which no server starts, and which the next restore reuses.
 */
export async function restore(request: RestoreRequest, work: StoreWork): Promise<StoreOutcome> {
  const source = resolve(request.source)
  const manifest = readManifest(source)
  if ('ok' in manifest) return manifest
  const seedMisfit = seedFault(request, source, manifest)
  if (seedMisfit !== undefined) return seedMisfit
  const claim = claimTarget(request.dataDir)
  if ('ok' in claim) return claim
  let outcome: StoreOutcome | undefined
  try {
    outcome = await fill({ ...request, source }, manifest, work)
    return outcome
  } finally {
    if (outcome?.ok !== true) {
      discardFilled(request.dataDir)
      // In a directory that existed before, the lock file stays, because another process may wait for it.
      if (claim.isNew) rmSync(request.dataDir, { recursive: true, force: true })
    }
    claim.release()
  }
}

async function fill(
  { source, dataDir, random }: RestoreRequest,
  manifest: BackupManifest,
  work: StoreWork,
): Promise<StoreOutcome> {
  const shards = manifest.shards.map((_shard, number) => number)
  const paths = shards.map((shard) => join(dataDir, shardDirectory(shard)))
  // From the first file on, the name of format.json marks an incomplete directory.
  const copied = await copyFiles({ source, dataDir }, manifest, work)
  if (copied !== undefined) return copied
  const format = readCopiedFormat({ source, dataDir }, manifest)
  if ('ok' in format) return format
  const records = manifest.shards.reduce((sum, shard) => sum + shard.records, 0)
  const { checks, headsRoot, faults } = await checkStores(paths, records, work)
  if (faults.length > 0) return { ok: false, because: 'found', details: faults }
  const counted = checks.map(({ agents, records, lastHlc }) => ({ agents, records, last_hlc: lastHlc }))
  if (JSON.stringify(counted) !== JSON.stringify(manifest.shards) || headsRoot !== manifest.heads_root) {
    return found('The strands do not match the manifest')
  }
  writeRestoredMarker(dataDir, manifest, systemClock())
  for (const path of paths) syncDirectory(path)
  syncDirectory(dataDir)
  work.signal.throwIfAborted()
  writeFormat(dataDir, { ...format, tokenEra: eraAfter(format.tokenEra, random) }, restoringFile)
  renameSync(join(dataDir, restoringFile), join(dataDir, formatFile))
  syncDirectory(dataDir)
  return { ok: true, manifest }
}

/** Copies every file of the manifest. @returns the fault of a file */
async function copyFiles(
  { source, dataDir }: { source: string; dataDir: string },
  manifest: BackupManifest,
  { show, signal }: StoreWork,
): Promise<RestoreFailure | undefined> {
  const allBytes = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0)
  let done = 0
  show({ doing: 'copied', unit: 'bytes', state: () => ({ done, total: allBytes }) })
  const reading = { signal, onBytes: (bytes: number) => void (done += bytes) }
  const inOrder = manifest.files.toSorted(
    (one, other) => Number(other.path === formatFile) - Number(one.path === formatFile),
  )
  for (const { path, bytes, sha256 } of inOrder) {
    const to = join(dataDir, path === formatFile ? restoringFile : path)
    if (path.includes('/')) mkdirSync(dirname(to), { mode: 0o700 })
    const digest = await copyFile(join(source, path), to, { ...reading, bytesMax: bytes })
    if (digest.bytes !== bytes || digest.sha256 !== sha256) {
      return found(`The file ${join(source, path)} does not match the manifest`)
    }
    syncDirectory(dataDir)
  }
  return undefined
}

/** Reads the manifest of a backup and checks that all files exist with the right sizes. */
function readManifest(source: string): BackupManifest | RestoreFailure {
  const file = join(source, manifestFile)
  try {
    const bytes = readSmall(file, limits.manifestBytesMax)
    if (bytes === undefined) return found(`The file ${file} is not a backup manifest`)
    const manifest = parseBackupManifest(bytes)
    if (manifest === undefined)
      return found(`The file ${file} is not a backup manifest that this version can read`)
    return filesFault(source, manifest) ?? manifest
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    if (error.code !== 'ENOENT') return found(`The backup cannot be read: ${error.message}`)
    return found(`The directory ${source} has no ${manifestFile}: it is not a backup, or an incomplete one`)
  }
}

/** Checks that a backup has the files of its manifest, and the manifest exactly the required files. */
function filesFault(source: string, manifest: BackupManifest): RestoreFailure | undefined {
  const named = manifest.files.map(({ path }) => path)
  const stores = manifest.shards.map((_shard, number) => storeFile(number))
  const missing = [formatFile, ...stores].find((path) => !named.includes(path))
  if (missing !== undefined) return found(`The manifest does not name ${missing}`)
  const known = new Set([formatFile, ...stores, ...secretFiles])
  const foreign = named.find((path, index) => !known.has(path) || named.indexOf(path) !== index)
  if (foreign !== undefined)
    return found(`The manifest names ${JSON.stringify(foreign)}, which is unknown or named twice`)
  const within = realpathSync(source)
  for (const { path, bytes } of manifest.files) {
    const file = join(source, path)
    const facts = lstatSync(file, { throwIfNoEntry: false })
    if (facts === undefined) return found(`The file ${file} is missing`)
    // A link could point to a file outside the backup or to an endless device.
    if (!facts.isFile() || realpathSync(file) !== join(within, path))
      return found(`Expected ${file} to be a regular file of the backup, not a link`)
    if (facts.size !== bytes) return found(`The file ${file} has ${facts.size} bytes, not ${bytes}`)
    if (!stores.includes(path) && bytes > limits.backupFileBytesMax)
      return found(`The file ${file} is longer than ${limits.backupFileBytesMax} bytes`)
  }
  return undefined
}

/** Checks that the master seed of the backup is available, from a setting or from the backup. */
function seedFault(
  { masterSeed }: RestoreRequest,
  source: string,
  { files, source: { master_seed_fingerprint: masterSeedFingerprint } }: BackupManifest,
): RestoreFailure | undefined {
  const isInBackup = files.some(({ path }) => path === seedFile)
  if (masterSeed === undefined && !isInBackup) {
    return usage('The backup contains no master seed: set its master seed by SERVICE_MASTER_SEED')
  }
  if (masterSeed !== undefined && !isSeedOf(masterSeed, { masterSeedFingerprint })) {
    return usage('The given master seed does not match the backup')
  }
  if (!isInBackup) return undefined
  const text = readSmall(join(source, seedFile), limits.backupFileBytesMax)?.toString('utf8').trim() ?? ''
  return /^[0-9a-f]{64}$/.test(text) && isSeedOf(Buffer.from(text, 'hex'), { masterSeedFingerprint })
    ? undefined
    : found(`The file ${join(source, seedFile)} does not contain the master seed of the backup`)
}

/** Reads the copied format.json, if it belongs to the same data directory as the manifest. */
function readCopiedFormat(
  { source, dataDir }: { source: string; dataDir: string },
  { shards, source: of }: BackupManifest,
): Format | RestoreFailure {
  const format = readFormat(dataDir, restoringFile)
  if (typeof format === 'string') return found(format)
  return format?.shards === shards.length &&
    format.createdAtMs === of.created_at_ms &&
    format.masterSeedFingerprint === of.master_seed_fingerprint
    ? format
    : found(`The file ${join(source, formatFile)} belongs to another data directory than the manifest`)
}

/**
 * The token era of a restored directory. It is random, because the backup does not contain the eras and key
 * rotations after it, whose tokens must not be valid here.
 */
export function eraAfter(era: number, random: RandomBytes): number {
  return era + 1 + Buffer.from(random(ERA_BYTES)).readUIntBE(0, ERA_BYTES)
}

/** Creates the directory, locks it and removes leftovers of an earlier restore. */
function claimTarget(dataDir: string): { isNew: boolean; release(): void } | RestoreFailure {
  try {
    const isNew = makeDirectory(dataDir)
    const distrusted = distrust(dataDir)
    if (distrusted !== undefined) return usage(distrusted)
    // Checked before the lock, which creates a file in the directory, and again after it.
    const early = occupied(dataDir)
    if (early !== undefined) return early
    const locking = lockDirectory(dataDir)
    if (!locking.ok) {
      return usage(
        `The data directory ${dataDir} is in use by process ${locking.holder ?? 'with an unknown id'}`,
      )
    }
    const late = occupied(dataDir)
    if (late !== undefined) {
      locking.release()
      return late
    }
    discardFilled(dataDir)
    return { isNew, release: locking.release }
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return usage(`The data directory ${dataDir} cannot be used: ${error.message}`)
  }
}

/** Why a directory contains more than leftovers of an earlier restore. */
function occupied(dataDir: string): RestoreFailure | undefined {
  const whole = existsSync(join(dataDir, formatFile))
  if (!whole && existsSync(join(dataDir, restoringFile))) return undefined
  const name = whole ? formatFile : nameWithin(dataDir, ['lock'])
  return name === undefined
    ? undefined
    : usage(`Expected the data directory ${dataDir} to be absent or empty: it holds ${name}`)
}

function usage(detail: string): RestoreFailure {
  return { ok: false, because: 'usage', details: [detail] }
}

function found(detail: string): RestoreFailure {
  return { ok: false, because: 'found', details: [detail] }
}
