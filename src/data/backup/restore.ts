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
import { leaveRestoredMarker } from '../restored-marker.js'
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

/** A request for a restore. */
export interface RestoreRequest {
  /** The backup. */
  source: string
  /** The new data directory, absent or empty. */
  dataDir: string
  /** The seed, if a setting gives it. */
  masterSeed: Buffer | undefined
  random: RandomBytes
}

/** Random bytes of an era: few enough that eight thousand restores in a row fit into a number. */
const ERA_BYTES = 5

/** Why a restore is not possible. */
type RestoreFailure = Extract<StoreOutcome, { ok: false }>

/**
 * Makes a data directory from a backup: each file has to be as the manifest says, and every strand of the copy has to
 * verify (docs/adr/0020-backup.md). If one does not, or the restore is interrupted, nothing is left. If it is killed,
 * it leaves a directory on which no server starts and which the next restore uses again.
 */
export async function restore(request: RestoreRequest, work: StoreWork): Promise<StoreOutcome> {
  const source = resolve(request.source)
  const manifest = readManifest(source)
  if ('ok' in manifest) return manifest
  const misfit = seedFault(request, source, manifest)
  if (misfit !== undefined) return misfit
  const claim = claimTarget(request.dataDir)
  if ('ok' in claim) return claim
  let outcome: StoreOutcome | undefined
  try {
    outcome = await fill({ ...request, source }, manifest, work)
    return outcome
  } finally {
    if (outcome?.ok !== true) {
      discardFilled(request.dataDir)
      // If the directory existed before, the lock file stays: another process may be waiting for it.
      if (claim.made) rmSync(request.dataDir, { recursive: true, force: true })
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
  // From the first file on, this name says that the directory is not complete yet.
  const copied = await copyFiles({ source, dataDir }, manifest, work)
  if (copied !== undefined) return copied
  const format = readCopiedFormat({ source, dataDir }, manifest)
  if ('ok' in format) return format
  const records = manifest.shards.reduce((sum, shard) => sum + shard.records, 0)
  const { checks, headsRoot, faults } = await checkStores(paths, records, work)
  if (faults.length > 0) return { ok: false, because: 'found', details: faults }
  const counted = checks.map(({ agents, records, lastHlc }) => ({ agents, records, last_hlc: lastHlc }))
  if (JSON.stringify(counted) !== JSON.stringify(manifest.shards) || headsRoot !== manifest.heads_root) {
    return found('The strands are not those that the manifest tells of')
  }
  leaveRestoredMarker(dataDir, manifest, systemClock())
  for (const path of paths) syncDirectory(path)
  syncDirectory(dataDir)
  work.signal.throwIfAborted()
  writeFormat(dataDir, { ...format, tokenEra: eraAfter(format.tokenEra, random) }, restoringFile)
  renameSync(join(dataDir, restoringFile), join(dataDir, formatFile))
  syncDirectory(dataDir)
  return { ok: true, manifest }
}

/** Copies every file that the manifest names. @returns what is wrong with one */
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
      return found(`The file ${join(source, path)} is not the one that the manifest tells of`)
    }
    syncDirectory(dataDir)
  }
  return undefined
}

/** The manifest of a backup that has all files, with the right lengths. */
function readManifest(source: string): BackupManifest | RestoreFailure {
  const file = join(source, manifestFile)
  try {
    const bytes = readSmall(file, limits.manifestBytesMax)
    if (bytes === undefined) return found(`The file ${file} is no manifest of a backup`)
    const manifest = parseBackupManifest(bytes)
    if (manifest === undefined)
      return found(`The file ${file} is no manifest of a backup that this version reads`)
    return filesFault(source, manifest) ?? manifest
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    if (error.code !== 'ENOENT') return found(`The backup cannot be read: ${error.message}`)
    return found(`The directory ${source} has no ${manifestFile}: it is no backup, or one that was cut off`)
  }
}

/** Whether a backup has the files that its manifest names, and the manifest names exactly the necessary ones. */
function filesFault(source: string, manifest: BackupManifest): RestoreFailure | undefined {
  const named = manifest.files.map(({ path }) => path)
  const stores = manifest.shards.map((_shard, number) => storeFile(number))
  const missing = [formatFile, ...stores].find((path) => !named.includes(path))
  if (missing !== undefined) return found(`The manifest does not name ${missing}`)
  const known = new Set([formatFile, ...stores, ...secretFiles])
  const foreign = named.find((path, index) => !known.has(path) || named.indexOf(path) !== index)
  if (foreign !== undefined)
    return found(`The manifest names ${JSON.stringify(foreign)}, which no backup has, or twice`)
  const within = realpathSync(source)
  for (const { path, bytes } of manifest.files) {
    const file = join(source, path)
    const facts = lstatSync(file, { throwIfNoEntry: false })
    if (facts === undefined) return found(`The file ${file} is missing`)
    // A link could lead to a file outside the backup, or to a device without end.
    if (!facts.isFile() || realpathSync(file) !== join(within, path))
      return found(`Expected ${file} to be a regular file of the backup, and no link`)
    if (facts.size !== bytes) return found(`The file ${file} has ${facts.size} bytes, not ${bytes}`)
    if (!stores.includes(path) && bytes > limits.backupFileBytesMax)
      return found(`The file ${file} is longer than any of its kind`)
  }
  return undefined
}

/** Whether the master seed of the backup is available, from a setting or in the backup. */
function seedFault(
  { masterSeed }: RestoreRequest,
  source: string,
  { files, source: { master_seed_fingerprint: masterSeedFingerprint } }: BackupManifest,
): RestoreFailure | undefined {
  const kept = files.some(({ path }) => path === seedFile)
  if (masterSeed === undefined && !kept) {
    return usage('The backup holds no master seed: give the one that it was made with by SERVICE_MASTER_SEED')
  }
  if (masterSeed !== undefined && !isSeedOf(masterSeed, { masterSeedFingerprint })) {
    return usage('The master seed given is not the one that the backup was made with')
  }
  if (!kept) return undefined
  const text = readSmall(join(source, seedFile), limits.backupFileBytesMax)?.toString('utf8').trim() ?? ''
  return /^[0-9a-f]{64}$/.test(text) && isSeedOf(Buffer.from(text, 'hex'), { masterSeedFingerprint })
    ? undefined
    : found(`The file ${join(source, seedFile)} does not hold the master seed that the backup was made with`)
}

/** What the copied format.json says, if it is of the same data directory as the manifest. */
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
    : found(`The file ${join(source, formatFile)} is of another data directory than the manifest`)
}

/**
 * The era of tokens in a restored directory. Random, because a backup does not say which eras and key rotations came
 * after it, and no token of those may be valid here.
 */
export function eraAfter(era: number, random: RandomBytes): number {
  return era + 1 + Buffer.from(random(ERA_BYTES)).readUIntBE(0, ERA_BYTES)
}

/** Makes the directory, locks it and removes what an earlier restore has left. */
function claimTarget(dataDir: string): { made: boolean; release(): void } | RestoreFailure {
  try {
    const made = makeDirectory(dataDir)
    const distrusted = distrust(dataDir)
    if (distrusted !== undefined) return usage(distrusted)
    // Checked before locking, which leaves a file in whatever directory was named, and again under the lock.
    const early = occupied(dataDir)
    if (early !== undefined) return early
    const locking = lockDirectory(dataDir)
    if (!locking.ok) {
      return usage(
        `The data directory ${dataDir} is in use by process ${locking.holder ?? 'of unknown number'}`,
      )
    }
    const late = occupied(dataDir)
    if (late !== undefined) {
      locking.release()
      return late
    }
    discardFilled(dataDir)
    return { made, release: locking.release }
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return usage(`The data directory ${dataDir} cannot be used: ${error.message}`)
  }
}

/** Whether a directory contains anything but what an earlier restore has left. */
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
