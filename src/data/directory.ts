import { createHash } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { assert } from '../base/assert.js'
import { type Clock, systemClock } from '../base/clock.js'
import type { RandomBytes } from '../base/random.js'
import type { Config } from '../settings/config.js'
import { shardsMax } from '../settings/threads.js'
import { type Locking, lockDirectory } from './lock.js'
import { distrust } from './trust.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfExists,
  unfinishedSuffix,
  writeDurably,
} from '../base/durable-file.js'
import {
  allowMissing,
  type ClusterOrigin,
  formatOfNode,
  noteRevision,
  originFault,
} from './cluster-origin.js'
import { type Format, formatFile, parseFormatOf, writeFormat } from './format.js'
import { isAuthorityFile } from './license-authority.js'
import { placeLogs } from './log-folders.js'
import { recoverFolders } from './shard-folders.js'
import { fingerprintOf } from './derived-keys.js'
import { seedBytes } from '../strand/keys.js'

/** A data directory that this process has locked. */
export interface DataDirectory {
  readonly path: string
  /** Fixed when the directory was created. */
  readonly shards: number
  /** A new number after each restore (src/data/format.ts). */
  readonly tokenEra: number
  /** The id of the cluster of a node; undefined for a standalone server. */
  readonly cluster: string | undefined
  /** 32 bytes, never logged. */
  readonly masterSeed: Buffer
  /** SHA-256 of the root key's text. */
  readonly rootKeyDigest: Buffer
  /** The root key, if this start created it; it is shown once. */
  readonly rootKeyCreated?: string
  close(): void
}

/** The result of `openDataDirectory`. The detail is for the operator; the exit code is 78. */
export type DataDirectoryOpening = { ok: true; directory: DataDirectory } | { ok: false; detail: string }

export type DataDirectorySettings = Pick<
  Config,
  'dataDir' | 'logDir' | 'shards' | 'masterSeed' | 'rootApiKey'
> & {
  /** For a node: the cluster to which the directory belongs or will belong. */
  origin?: ClusterOrigin | undefined
}

/** The file with the master seed, unless it is set by a setting. */
export const seedFile = 'master.seed'

/** The file with the root key, unless it is set by a setting. */
export const rootKeyFile = 'root.key'

/** The name of format.json during a restore: a directory that has it is not a data directory yet. */
export const restoringFile = 'format.json.restoring'

export function shardDirectory(shard: number): string {
  return `shard-${shard}`
}

const ROOT_KEY_PREFIX = 'sf_root_'
const ROOT_KEY_BYTES = 32

/**
 * Opens the data directory, and creates it at the first start (docs/OPERATIONS.md, The data directory).
 *
 * format.json is written last, after the secrets are on disk. A directory without it comes from an
 * interrupted first start, which the next start completes with the existing secrets.
 */
export function openDataDirectory(
  config: DataDirectorySettings,
  random: RandomBytes,
  clock: Clock = systemClock,
): DataDirectoryOpening {
  const path = config.dataDir
  let locking: Locking | undefined
  let opening: DataDirectoryOpening | undefined
  try {
    makeDirectory(path)
    const distrusted = distrust(path)
    if (distrusted !== undefined) return refuse(distrusted)
    locking = lockDirectory(path)
    if (!locking.ok) return refuse(describeHolder(path, locking.holder))
    opening = openLocked(config, { random, clock, close: locking.release })
    return opening
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return refuse(`The data directory ${path} cannot be used: ${error.message}`)
  } finally {
    if (locking?.ok === true && opening?.ok !== true) locking.release()
  }
}

/** A locked data directory whose shards are about to be resharded. */
export interface IdleDirectory {
  readonly path: string
  readonly format: Format
  close(): void
}

/**
 * Opens an existing data directory without its secrets, after it has completed or undone an interrupted
 * reshard.
 */
export function openIdleDirectory(
  path: string,
): { ok: true; directory: IdleDirectory } | { ok: false; detail: string } {
  let locking: Locking | undefined
  let format: Format | string | undefined
  try {
    if (!existsSync(join(path, formatFile))) {
      return { ok: false, detail: `No data directory at ${path}: ${formatFile} is missing` }
    }
    const distrusted = distrust(path)
    if (distrusted !== undefined) return { ok: false, detail: distrusted }
    locking = lockDirectory(path)
    if (!locking.ok) return { ok: false, detail: describeHolder(path, locking.holder) }
    const found = parseFormatOf(path)
    format = typeof found === 'object' ? recoverFolders(path, found) : found
    if (typeof format !== 'object')
      return { ok: false, detail: format ?? `Expected ${formatFile} in ${path}` }
    return { ok: true, directory: { path, format, close: locking.release } }
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return { ok: false, detail: `The data directory ${path} cannot be used: ${error.message}` }
  } finally {
    if (locking?.ok === true && typeof format !== 'object') locking.release()
  }
}

/** Free bytes of the file system of `path` for this process. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** Free bytes of the disk of the data, or of that of the logs if it has fewer. */
export function freeBytesOf({ dataDir, logDir }: Pick<Config, 'dataDir' | 'logDir'>): number {
  return Math.min(freeBytes(dataDir), logDir === undefined ? Infinity : freeBytes(logDir))
}

interface Opener {
  random: RandomBytes
  clock: Clock
  close(): void
}

function openLocked(config: DataDirectorySettings, opener: Opener): DataDirectoryOpening {
  const path = config.dataDir
  const found = parseFormatOf(path)
  if (typeof found === 'string') return refuse(found)
  const format = found === undefined ? undefined : recoverFolders(path, found)
  const originMisfit = originFault(config, format, config.origin)
  if (originMisfit !== undefined) return refuse(originMisfit)
  if (config.origin !== undefined && format !== undefined) allowMissing(storePaths(path, format.shards))
  const fault = contentsFault(path, format)
  if (fault !== undefined) return refuse(fault)
  if (format !== undefined && config.shards !== undefined && config.shards !== format.shards) {
    return refuse(
      `The data directory ${path} has ${format.shards} shards and SERVICE_SHARDS is ${config.shards}: unset ` +
        `it, or run strandfast reshard --shards ${config.shards}`,
    )
  }
  removeUnfinished(path)
  const masterSeed = readSeed(config, format, opener.random)
  if (typeof masterSeed === 'string') return refuse(masterSeed)
  const rootKey = readRootKey(config, format, opener.random)
  if (typeof rootKey === 'string') return refuse(rootKey)
  const created = format ?? makeFormat(config, masterSeed, opener.clock)
  const { shards, tokenEra, cluster } = created
  if (config.origin !== undefined) noteRevision(path, config.origin)
  const logFault =
    cluster === undefined ? placeLogs(path, storeFolders(path, shards), config.logDir) : undefined
  if (logFault !== undefined) return refuse(logFault)
  const about = { path, shards, tokenEra, cluster, masterSeed }
  return { ok: true, directory: { ...about, ...rootKey, close: opener.close } }
}

/** Creates the data directory with placeholders for its stores. */
function makeFormat(
  { dataDir, shards, origin }: DataDirectorySettings,
  masterSeed: Buffer,
  clock: Clock,
): Format {
  const format =
    origin === undefined
      ? {
          shards: shards ?? Math.min(availableParallelism(), shardsMax),
          createdAtMs: clock(),
          masterSeedFingerprint: fingerprintOf(masterSeed),
          layout: 0,
          switching: false,
          tokenEra: 0,
        }
      : formatOfNode(origin)
  // Each is removed when its store is created, so that a lost store differs from one that was never created.
  for (const store of storePaths(dataDir, format.shards)) makeDirectory(store + unfinishedSuffix)
  writeFormat(dataDir, format)
  return format
}

/**
 * Faults of an existing data directory: missing or unusable parts, one sentence each. Changes nothing.
 * @param format the result of `readFormat`
 */
export function missingPieces(config: DataDirectorySettings, format: Format | undefined): string[] {
  // A missing store of a node is rebuilt from the log of its cluster.
  const fault = format?.cluster === undefined ? contentsFault(config.dataDir, format) : undefined
  const faults = fault === undefined ? [] : [fault]
  if (format === undefined) return faults
  const seed = readSeed(config, format, noRandom)
  if (typeof seed === 'string') faults.push(seed)
  const file = join(config.dataDir, rootKeyFile)
  if (config.rootApiKey !== undefined) return faults
  if (readIfExists(file) === undefined) {
    faults.push(`The file ${file} is missing: restore it, or the next start creates a new root key`)
    return faults
  }
  const rootKey = readRootKey(config, format, noRandom)
  if (typeof rootKey === 'string') faults.push(rootKey)
  return faults
}

function noRandom(): never {
  throw new Error('The check of a data directory must not create secrets')
}

/** Why a directory is not a complete data directory: foreign or missing files. */
function contentsFault(path: string, format: Format | undefined): string | undefined {
  if (format === undefined) {
    const foreign = foreignName(path)
    if (existsSync(join(path, restoringFile))) {
      return `A restore to ${path} was interrupted: run strandfast restore again`
    }
    if (foreign === undefined) return undefined
    return (
      `The directory ${path} contains ${foreign} but no ${formatFile}: use an empty directory, or a data directory ` +
      'of this program'
    )
  }
  const missing = storeNames(format.shards).find(
    (name) => !existsSync(join(path, name, 'data.mdb')) && !existsSync(join(path, name + unfinishedSuffix)),
  )
  return missing === undefined
    ? undefined
    : `The store ${join(path, missing)} is missing: restore it from a backup`
}

export function storeNames(shards: number): string[] {
  return Array.from({ length: shards }, (_none, shard) => `shard-${shard}`)
}

function storePaths(path: string, shards: number): string[] {
  return storeNames(shards).map((name) => join(path, name))
}

/** The directories of the stores, or of their placeholders. */
function storeFolders(path: string, shards: number): string[] {
  return storePaths(path, shards).map((store) => (existsSync(store) ? store : store + unfinishedSuffix))
}

/** Matches the placeholder of a store that is not created yet. */
const placeholder = /^shard-\d+\.tmp$/

/** An entry of a directory without format.json that no first start of this program can have created. */
function foreignName(path: string): string | undefined {
  const ours = [seedFile, rootKeyFile, 'lock', ...unfinishedNames()]
  // A license may be issued before the first start. A new volume contains lost+found or hidden files.
  return readdirSync(path).find(
    (name) =>
      !ours.includes(name) &&
      !placeholder.test(name) &&
      !isAuthorityFile(name) &&
      name !== 'lost+found' &&
      !name.startsWith('.'),
  )
}

function unfinishedNames(): string[] {
  return [formatFile, seedFile, rootKeyFile].map((name) => name + unfinishedSuffix)
}

function removeUnfinished(path: string): void {
  for (const name of unfinishedNames()) rmSync(join(path, name), { force: true })
}

/** Reads the master seed, or creates it. @returns a text if it cannot be used */
function readSeed(
  config: DataDirectorySettings,
  format: Format | undefined,
  random: RandomBytes,
): Buffer | string {
  const file = join(config.dataDir, seedFile)
  if (config.masterSeed !== undefined) {
    if (format === undefined || isSeedOf(config.masterSeed, format)) return config.masterSeed
    return (
      `The given master seed does not match the data directory ${config.dataDir}: set the right ` +
      `one${readIfExists(file) === undefined ? '' : `, or unset SERVICE_MASTER_SEED to use ${seedFile}`}`
    )
  }
  const stored = readIfExists(file)?.trim()
  if (stored !== undefined) {
    const seed = /^[0-9a-f]{64}$/.test(stored) ? Buffer.from(stored, 'hex') : undefined
    if (seed !== undefined && (format === undefined || isSeedOf(seed, format))) return seed
    return `The file ${file} does not contain the master seed of the data directory: restore it`
  }
  if (format !== undefined) {
    return `The file ${file} is missing: restore it, or set SERVICE_MASTER_SEED`
  }
  const created = Buffer.from(random(seedBytes))
  assert(created.length === seedBytes, 'a master seed has 32 bytes')
  writeDurably(file, `${created.toString('hex')}\n`)
  return created
}

export function isSeedOf(seed: Buffer, format: Pick<Format, 'masterSeedFingerprint'>): boolean {
  return fingerprintOf(seed) === format.masterSeedFingerprint
}

type RootKey = Pick<DataDirectory, 'rootKeyDigest' | 'rootKeyCreated'>

/** Reads the root key, or creates it. @returns a text if it cannot be used */
function readRootKey(
  config: DataDirectorySettings,
  format: Format | undefined,
  random: RandomBytes,
): RootKey | string {
  if (config.rootApiKey !== undefined) return { rootKeyDigest: digest(config.rootApiKey) }
  const file = join(config.dataDir, rootKeyFile)
  const stored = readIfExists(file)?.trim()
  if (stored !== undefined) {
    if (!/^[\x21-\x7e]{32,512}$/.test(stored)) {
      return `The file ${file} does not contain a root key: restore it, or remove it to create a new one`
    }
    // An interrupted first start may not have shown the key.
    return { rootKeyDigest: digest(stored), ...(format === undefined && { rootKeyCreated: stored }) }
  }
  const created = ROOT_KEY_PREFIX + Buffer.from(random(ROOT_KEY_BYTES)).toString('base64url')
  writeDurably(file, `${created}\n`)
  return { rootKeyDigest: digest(created), rootKeyCreated: created }
}

function digest(rootKey: string): Buffer {
  return createHash('sha256').update(rootKey).digest()
}

function describeHolder(path: string, holder: number | undefined): string {
  const holderName = holder === undefined ? 'another process' : `process ${holder}`
  return `The data directory ${path} is in use by ${holderName}: only one process can use it at a time`
}

function refuse(detail: string): DataDirectoryOpening {
  return { ok: false, detail }
}
