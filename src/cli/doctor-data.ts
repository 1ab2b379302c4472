import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fdatasyncSync,
  openSync,
  rmSync,
  statSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../settings/config.js'
import { logDirFault } from '../data/log-folders.js'
import { freeBytes, missingPieces, storeNames } from '../data/directory.js'
import { lockDirectory, lockHolder } from '../data/lock.js'
import { isFileSystemError } from '../base/durable-file.js'
import { readFormat } from '../data/format.js'
import { startProgress } from './progress.js'
import { structureFault } from '../store-files/lmdb-file.js'
import { isWholeRow } from '../store-files/row-checksum.js'
import { isTableOfFile } from '../store-files/store-tables.js'

/** Number and size of the writes of one measurement; the size is that of a small commit. */
const SYNC_COUNT = 200
const SYNC_BYTES = 4096

/** Below this number of synchronised writes per second, commits are noticeably slow. */
const SYNCS_FEW = 100

/**
 * Network file systems by their type in statfs(2) on Linux. LMDB's locks and memory map do not work over a
 * network.
 */
const networkTypes: Readonly<Record<number, string>> = {
  0x69_69: 'NFS',
  0x51_7b: 'SMB',
  0xff_53_4d_42: 'CIFS',
  0xfe_53_4d_42: 'SMB2',
  0x01_02_19_97: '9P',
  0x00_c3_64_00: 'Ceph',
  0x53_46_41_4f: 'AFS',
  0x6b_41_46_53: 'kAFS',
  0x73_75_72_45: 'Coda',
  0x01_16_19_70: 'GFS2',
  0x0b_d0_0b_d0: 'Lustre',
  0x47_50_46_53: 'GPFS',
}
const doubtfulTypes: Readonly<Record<number, string>> = {
  0x01_02_19_94: 'tmpfs, which a restart of the machine empties',
  0x79_4c_76_30: 'overlayfs, which is deleted with its container',
  0x65_73_55_46: 'FUSE, whose locks and synchronised writes depend on its implementation',
}

/**
 * Checks the data directory, or the disk on which it will be created. Changes nothing.
 * @param alive whether the server responds, in which case it holds the lock
 */
export async function examineDataDirectory(config: Config, alive: boolean): Promise<Finding[]> {
  const { dataDir } = config
  try {
    const exists = existsSync(dataDir)
    const disk = exists ? dataDir : nearestExisting(dataDir)
    const directory = exists
      ? [
          examineAccess(dataDir),
          ...examineModes(dataDir),
          examineFormat(config),
          ...examinePieces(config),
          examineLock(dataDir, alive),
          ...(await examineStores(dataDir)),
        ]
      : [ok('data directory', `${dataDir} will be created at the first start`)]
    const { logDir, freeBytesMin } = config
    return [
      ...directory,
      ...examineLogDir(config),
      ...examineDisk(disk, freeBytesMin),
      ...(logDir === undefined ? [] : examineDisk(nearestExisting(logDir), freeBytesMin, 'log ')),
    ]
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return [fail('data directory', `${dataDir}: ${error.message}`)]
  }
}

/** The path itself if it exists, otherwise its nearest ancestor that exists. */
function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))
}

function examineAccess(dataDir: string): Finding {
  accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK)
  return ok('data directory', dataDir)
}

/**
 * Checks whether other users of the machine can access the data or the secrets. Windows has no such modes.
 */
function examineModes(dataDir: string): Finding[] {
  if (process.platform === 'win32') return []
  return ['', 'master.seed', 'root.key'].flatMap((name) => {
    const path = join(dataDir, name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    if ((mode & 0o077) === 0) return []
    return [warn('permissions', `other users of this machine can access ${path}: run chmod go= ${path}`)]
  })
}

function examineFormat({ dataDir, shards }: Config): Finding {
  const format = readFormat(dataDir)
  if (format === undefined) return ok('format', 'not created yet: the first start writes it')
  if (typeof format === 'string') return fail('format', format)
  if (shards !== undefined && shards !== format.shards) {
    return fail('format', `${format.shards} shards, but SERVICE_SHARDS is ${shards}`)
  }
  return ok('format', `${format.shards} shards, created ${new Date(format.createdAtMs).toISOString()}`)
}

/** Checks that the stores, the master seed and the root key exist: a server does not start without them. */
function examinePieces(config: Config): Finding[] {
  const format = readFormat(config.dataDir)
  if (typeof format === 'string') return []
  const faults = missingPieces(config, format)
  if (faults.length > 0) return faults.map((fault) => fail('pieces', fault))
  return format === undefined ? [] : [ok('pieces', 'all stores, the master seed and the root key exist')]
}

function examineLock(dataDir: string, alive: boolean): Finding {
  if (!existsSync(join(dataDir, 'lock'))) return ok('lock', 'not created yet')
  const held = lockHolder(dataDir)
  if (held === undefined) return ok('lock', 'free')
  const holder = held.holder === undefined ? 'another process' : `process ${held.holder}`
  return alive ? ok('lock', `held by ${holder}`) : warn('lock', `held by ${holder}, but no server responds`)
}

/** Checks the pages and rows of each store. Takes the lock: no other process may have the stores open. */
async function examineStores(dataDir: string): Promise<Finding[]> {
  const format = readFormat(dataDir)
  if (typeof format !== 'object') return []
  const locking = lockDirectory(dataDir)
  if (!locking.ok) return [ok('stores', 'not checked while a server runs')]
  const progress = startProgress()
  const names = storeNames(format.shards)
  let done = 0
  progress.show({ doing: 'checked', unit: 'stores', state: () => ({ done, total: names.length }) })
  try {
    const findings: Finding[] = []
    for (const [index, name] of names.entries()) {
      done = index
      // The check of a store blocks the event loop, so the progress line is updated before it.
      progress.paint()
      const file = join(dataDir, name, 'data.mdb')
      if (!existsSync(file)) continue
      const fault = storeFault(file)
      if (fault === undefined)
        findings.push(
          ok('stores', `all pages and rows of ${name} are intact`),
          await examineTrees(dataDir, name),
          await examineLog(dataDir, name),
        )
      else findings.push(fail('stores', `${file} is damaged: ${fault}`))
    }
    return findings
  } finally {
    done = names.length
    progress.end()
    locking.release()
  }
}

/** Compares the stored trees of a store with its records. */
async function examineTrees(dataDir: string, name: string): Promise<Finding> {
  const { treeFault } = await import('../../workers/store/check/tree-check.js')
  const fault = await treeFault(join(dataDir, name))
  if (fault === undefined) return ok('trees', `the trees of ${name} match its records`)
  return fail('trees', `the trees of ${name} do not match its records: ${fault}`)
}

/** Reads the log of a store. */
async function examineLog(dataDir: string, name: string): Promise<Finding> {
  const { segmentsAhead } = await import('../../workers/store/log/shard-log.js')
  try {
    const segments = await segmentsAhead(join(dataDir, name))
    if (segments === undefined) return ok('log', `the log of ${name} is in the database of the cluster`)
    return ok('log', `the log of ${name} is intact; the next start applies ${segments} commits to the store`)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return fail('log', `the log of ${name} cannot be read: ${error.message}`)
  }
}

function examineLogDir({ dataDir, logDir }: Config): Finding[] {
  if (logDir === undefined) return []
  const fault = logDirFault(dataDir, logDir)
  return [fault === undefined ? ok('log directory', logDir) : fail('log directory', fault)]
}

/** Checks the disk of a directory. @param subjectPrefix put before the subject of each finding */
function examineDisk(path: string, freeBytesMin: number, subjectPrefix = ''): Finding[] {
  const findings = [examineSpace(path, freeBytesMin), examineType(path), measureSyncs(path)]
  return findings.map((finding) => ({ ...finding, subject: subjectPrefix + finding.subject }))
}

function examineSpace(path: string, freeBytesMin: number): Finding {
  const free = freeBytes(path)
  const text = `${Math.floor(free / 1_048_576)} MiB free`
  if (free < freeBytesMin)
    return fail('space', `${text}: less than SERVICE_MIN_FREE_BYTES, so the server is read-only`)
  return free < 4 * freeBytesMin ? warn('space', text) : ok('space', text)
}

function examineType(path: string): Finding {
  if (process.platform !== 'linux') return ok('file system', 'not checked on this operating system')
  const { type } = statfsSync(path)
  const network = networkTypes[type]
  if (network !== undefined)
    return fail('file system', `${network} is a network file system: use a local disk`)
  const doubtful = doubtfulTypes[type]
  return doubtful === undefined
    ? ok('file system', `local, type 0x${type.toString(16)}`)
    : warn('file system', doubtful)
}

/** Measures how many small writes the disk synchronises per second: the limit for consecutive commits. */
function measureSyncs(path: string): Finding {
  const file = join(path, `.doctor-${process.pid}.tmp`)
  const fd = openSync(file, 'wx', 0o600)
  try {
    const bytes = Buffer.alloc(SYNC_BYTES, 1)
    const startMs = performance.now()
    for (let count = 0; count < SYNC_COUNT; count++) {
      writeSync(fd, bytes, 0, SYNC_BYTES, 0)
      fdatasyncSync(fd)
    }
    const perSec = Math.round((SYNC_COUNT * 1000) / (performance.now() - startMs))
    const text = `${perSec} synchronised writes of ${SYNC_BYTES} bytes per second`
    return perSec < SYNCS_FEW ? warn('disk', `${text}: slow`) : ok('disk', text)
  } finally {
    closeSync(fd)
    rmSync(file, { force: true })
  }
}

/** The result of one check of `strandfast doctor`. Only `fail` makes the command exit with 1. */
export interface Finding {
  level: 'ok' | 'warn' | 'fail'
  /** What was checked, in a word or two. */
  subject: string
  detail: string
}

/** A passed check. */
export function ok(subject: string, detail: string): Finding {
  return { level: 'ok', subject, detail }
}

/** A finding with which the server runs, but which needs attention. */
export function warn(subject: string, detail: string): Finding {
  return { level: 'warn', subject, detail }
}

/** A finding with which the server does not start, or does not run safely. */
export function fail(subject: string, detail: string): Finding {
  return { level: 'fail', subject, detail }
}

/**
 * Tables whose rows do not end with a checksum: each record in them has its own checksum, and erased records
 * have no content to protect.
 */
const tablesOfRecords: ReadonlySet<string> = new Set(['blocks', 'imported-blocks', 'filling'])

/**
 * Checks every page of a shard's data file, and every row except records, which `strandfast verify` and
 * `backup` check. No other process may write to the file.
 * @returns what is wrong with the file, or undefined
 */
export function storeFault(path: string): string | undefined {
  return structureFault(path, {
    table: isTableOfFile,
    row: (table, key, value) => tablesOfRecords.has(table) || isWholeRow(key, value),
  })
}
