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
  readIfThere,
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
import { settleFolders } from './shard-folders.js'
import { fingerprintOf } from './derived-keys.js'
import { seedBytes } from '../strand/keys.js'

/** A data directory that this process has locked. */
export interface DataDirectory {
  /** Absolute. */
  readonly path: string
  /** Fixed when the directory was made. */
  readonly shards: number
  /** Another number after each restore (src/data/format.ts). */
  readonly tokenEra: number
  /** The id of the cluster of which it is a node's; undefined for one of its own. */
  readonly cluster: string | undefined
  /** 32 bytes, never logged. */
  readonly masterSeed: Buffer
  /** SHA-256 of the root key's text. */
  readonly rootKeyDigest: Buffer
  /** The root key, if this start made it: to be shown once. */
  readonly rootKeyCreated?: string
  /** Releases the lock. */
  close(): void
}

/** What `openDataDirectory` answers. The detail is for the operator; the exit code is 78. */
export type DataDirectoryOpening = { ok: true; directory: DataDirectory } | { ok: false; detail: string }

/** The settings for opening a data directory. */
export type DataDirectorySettings = Pick<
  Config,
  'dataDir' | 'logDir' | 'shards' | 'masterSeed' | 'rootApiKey'
> & {
  /** The cluster of which it is, or becomes, the directory of a node. */
  origin?: ClusterOrigin | undefined
}

/** The file with the master seed, unless a setting gives it. */
export const seedFile = 'master.seed'

/** The file with the root key, unless a setting gives it. */
export const rootKeyFile = 'root.key'

/** The name of format.json during a restore: a directory that has it is not a data directory yet. */
export const restoringFile = 'format.json.restoring'

/** Name of the directory of a shard's store. */
export function shardDirectory(shard: number): string {
  return `shard-${shard}`
}

const ROOT_KEY_PREFIX = 'sf_root_'
const ROOT_KEY_BYTES = 32

/**
 * Opens the data directory, and makes it at the first start (docs/OPERATIONS.md, The data directory).
 *
 * Secrets are on disk before format.json is, and that is written last: a directory without it is one whose first
 * start was cut off, which the next start completes with the secrets that are there already.
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

/** A data directory whose shards are about to be moved, locked by this process. */
export interface IdleDirectory {
  /** Absolute. */
  readonly path: string
  readonly format: Format
  /** Releases the lock. */
  close(): void
}

/** Opens an existing data directory, without its secrets, after completing or undoing an interrupted reshard. */
export function openIdleDirectory(
  path: string,
): { ok: true; directory: IdleDirectory } | { ok: false; detail: string } {
  let locking: Locking | undefined
  let format: Format | string | undefined
  try {
    if (!existsSync(join(path, formatFile))) {
      return { ok: false, detail: `There is no data directory at ${path}: expected ${formatFile} in it` }
    }
    const distrusted = distrust(path)
    if (distrusted !== undefined) return { ok: false, detail: distrusted }
    locking = lockDirectory(path)
    if (!locking.ok) return { ok: false, detail: describeHolder(path, locking.holder) }
    const found = parseFormatOf(path)
    format = typeof found === 'object' ? settleFolders(path, found) : found
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

/** Bytes that this process may still write to the file system of `path`. */
export function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** Bytes that this process may still write to the disk of the data, or to that of the logs where it has fewer. */
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
  const format = found === undefined ? undefined : settleFolders(path, found)
  const misfit = originFault(config, format, config.origin)
  if (misfit !== undefined) return refuse(misfit)
  if (config.origin !== undefined && format !== undefined) allowMissing(storePaths(path, format.shards))
  const fault = placesFault(path, format)
  if (fault !== undefined) return refuse(fault)
  if (format !== undefined && config.shards !== undefined && config.shards !== format.shards) {
    return refuse(
      `The data directory ${path} has ${format.shards} shards and SERVICE_SHARDS asks for ${config.shards}: unset ` +
        `it, or change the directory by: strandfast reshard --shards ${config.shards}`,
    )
  }
  removeUnfinished(path)
  const masterSeed = readSeed(config, format, opener.random)
  if (typeof masterSeed === 'string') return refuse(masterSeed)
  const rootKey = readRootKey(config, format, opener.random)
  if (typeof rootKey === 'string') return refuse(rootKey)
  const made = format ?? makeFormat(config, masterSeed, opener.clock)
  // Before a store has a log: an earlier version would not read it.
  if (!made.hasLog) writeFormat(path, { ...made, hasLog: true })
  const { shards, tokenEra, cluster } = made
  if (config.origin !== undefined) noteRevision(path, config.origin)
  const logFault =
    cluster === undefined ? placeLogs(path, storeFolders(path, shards), config.logDir) : undefined
  if (logFault !== undefined) return refuse(logFault)
  const about = { path, shards, tokenEra, cluster, masterSeed }
  return { ok: true, directory: { ...about, ...rootKey, close: opener.close } }
}

/** Makes a directory a data directory, with placeholders for its stores. */
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
          hasLog: true,
        }
      : formatOfNode(origin)
  // Each is removed when its store is made, so that a lost store is not mistaken for one that was never made.
  for (const store of storePaths(dataDir, format.shards)) makeDirectory(store + unfinishedSuffix)
  writeFormat(dataDir, format)
  return format
}

/**
 * What an existing data directory lacks, or has that cannot be used, one sentence each. Changes nothing.
 * @param format the result of `readFormat`
 */
export function missingPieces(config: DataDirectorySettings, format: Format | undefined): string[] {
  // A store of a node is made from the log of its cluster.
  const fault = format?.cluster === undefined ? placesFault(config.dataDir, format) : undefined
  const faults = fault === undefined ? [] : [fault]
  if (format === undefined) return faults
  const seed = readSeed(config, format, noRandom)
  if (typeof seed === 'string') faults.push(seed)
  const file = join(config.dataDir, rootKeyFile)
  if (config.rootApiKey !== undefined) return faults
  if (readIfThere(file) === undefined) {
    faults.push(`The file ${file} is missing: restore it, or the next start makes another root key`)
    return faults
  }
  const rootKey = readRootKey(config, format, noRandom)
  if (typeof rootKey === 'string') faults.push(rootKey)
  return faults
}

/** An existing directory has its secrets; checking it makes none. */
function noRandom(): never {
  throw new Error('Expected a data directory that has its secrets')
}

/** Why a directory is not one of ours, or not complete: files that are in it, or missing. */
function placesFault(path: string, format: Format | undefined): string | undefined {
  if (format === undefined) {
    const foreign = foreignName(path)
    if (existsSync(join(path, restoringFile))) {
      return `A restore to ${path} was cut off: begin it again by strandfast restore`
    }
    if (foreign === undefined) return undefined
    return (
      `The directory ${path} holds ${foreign} but no ${formatFile}: expected an empty one, or one that this ` +
      'program made'
    )
  }
  const missing = storeNames(format.shards).find(
    (name) => !existsSync(join(path, name, 'data.mdb')) && !existsSync(join(path, name + unfinishedSuffix)),
  )
  return missing === undefined
    ? undefined
    : `The store ${join(path, missing)} is missing: restore it from a backup`
}

/** The directories in which the shards have their stores. */
export function storeNames(shards: number): string[] {
  return Array.from({ length: shards }, (_none, shard) => `shard-${shard}`)
}

function storePaths(path: string, shards: number): string[] {
  return storeNames(shards).map((name) => join(path, name))
}

/** Where the stores of a data directory are, or will be made. */
function storeFolders(path: string, shards: number): string[] {
  return storePaths(path, shards).map((store) => (existsSync(store) ? store : store + unfinishedSuffix))
}

/** The name of the placeholder for a store that is still to be made. */
const unmade = /^shard-\d+\.tmp$/

/** A name in a directory without format.json that no first start of this program can have left there. */
function foreignName(path: string): string | undefined {
  const ours = [seedFile, rootKeyFile, 'lock', ...unfinishedNames()]
  // A license may have been issued before the first start. A new volume carries lost+found or hidden files.
  return readdirSync(path).find(
    (name) =>
      !ours.includes(name) &&
      !unmade.test(name) &&
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

/** The master seed, made when there is none; or a text that says why it cannot be used. */
function readSeed(
  config: DataDirectorySettings,
  format: Format | undefined,
  random: RandomBytes,
): Buffer | string {
  const file = join(config.dataDir, seedFile)
  if (config.masterSeed !== undefined) {
    if (format === undefined || isSeedOf(config.masterSeed, format)) return config.masterSeed
    return (
      `The master seed given is not the one that the data directory ${config.dataDir} was made with: give that ` +
      `one${readIfThere(file) === undefined ? '' : `, or unset SERVICE_MASTER_SEED to use ${seedFile}`}`
    )
  }
  const kept = readIfThere(file)?.trim()
  if (kept !== undefined) {
    const seed = /^[0-9a-f]{64}$/.test(kept) ? Buffer.from(kept, 'hex') : undefined
    if (seed !== undefined && (format === undefined || isSeedOf(seed, format))) return seed
    return `The file ${file} does not hold the master seed that the data directory was made with: restore it`
  }
  if (format !== undefined) {
    return `The file ${file} is missing: restore it, or give the master seed by SERVICE_MASTER_SEED`
  }
  const made = Buffer.from(random(seedBytes))
  assert(made.length === seedBytes, 'a master seed has 32 bytes')
  writeDurably(file, `${made.toString('hex')}\n`)
  return made
}

/** Whether a seed is the one that a data directory was made with. */
export function isSeedOf(seed: Buffer, format: Pick<Format, 'masterSeedFingerprint'>): boolean {
  return fingerprintOf(seed) === format.masterSeedFingerprint
}

type RootKey = Pick<DataDirectory, 'rootKeyDigest' | 'rootKeyCreated'>

/** The root key's digest, the key made when there is none; or a text that says why it cannot be used. */
function readRootKey(
  config: DataDirectorySettings,
  format: Format | undefined,
  random: RandomBytes,
): RootKey | string {
  if (config.rootApiKey !== undefined) return { rootKeyDigest: digest(config.rootApiKey) }
  const file = join(config.dataDir, rootKeyFile)
  const kept = readIfThere(file)?.trim()
  if (kept !== undefined) {
    if (!/^[\x21-\x7e]{32,512}$/.test(kept)) {
      return `The file ${file} does not hold a root key: restore it, or remove it to have a new one made`
    }
    // A first start that was interrupted may not have shown the key.
    return { rootKeyDigest: digest(kept), ...(format === undefined && { rootKeyCreated: kept }) }
  }
  const made = ROOT_KEY_PREFIX + Buffer.from(random(ROOT_KEY_BYTES)).toString('base64url')
  writeDurably(file, `${made}\n`)
  return { rootKeyDigest: digest(made), rootKeyCreated: made }
}

function digest(rootKey: string): Buffer {
  return createHash('sha256').update(rootKey).digest()
}

function describeHolder(path: string, holder: number | undefined): string {
  const who = holder === undefined ? 'another process' : `process ${holder}`
  return `The data directory ${path} is in use by ${who}: one process at a time can use it`
}

function refuse(detail: string): DataDirectoryOpening {
  return { ok: false, detail }
}
