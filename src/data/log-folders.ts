import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import {
  makeDirectory,
  readIfExists,
  syncDirectory,
  unfinishedSuffix,
  writeDurably,
} from '../base/durable-file.js'
import { logFolder } from '../store-files/log-folder.js'
import { distrustFolder } from './trust.js'

/** A complete folder that is about to become the log, or an old log that is about to be removed. */
const MOVING = `${logFolder}.moving`

/** The file in SERVICE_LOG_DIR with the real path of the data directory to which the logs belong. */
const OWNER = 'owner'

const storePattern = /^shard-\d+(?:\.tmp)?$/

/** Entries of a new file system, and hidden files. */
const emptyDisk = /^(?:lost\+found|\..*)$/

/**
 * Moves the logs of stores to SERVICE_LOG_DIR, or beside their stores if it is not set. No process may have
 * the stores open. A log is copied before its old folder is removed, so one of them is complete whenever the
 * machine stops.
 * @param stores folders of the stores, or of their placeholders
 * @returns why that folder cannot be used; undefined if it can
 * @throws Error of the file system
 */
export function placeLogs(
  dataDir: string,
  stores: readonly string[],
  logDir: string | undefined,
): string | undefined {
  const missing = stores.map((store) => linkOf(join(store, logFolder))).find((to) => to && !existsSync(to))
  if (missing !== undefined) return `The log of a store is missing at ${missing}: mount its disk`
  const fault = logDir === undefined ? undefined : takeFolder(dataDir, logDir)
  if (fault !== undefined) return fault
  for (const [shard, store] of stores.entries()) {
    recoverMove(store)
    if (logDir === undefined) moveIn(store)
    else moveOut(store, join(logDir, `shard-${shard}`))
  }
  return undefined
}

export function removeStore(store: string): void {
  const linked = linkOf(join(store, logFolder))
  if (linked !== undefined) rmSync(linked, { recursive: true, force: true })
  rmSync(store, { recursive: true, force: true })
}

/** Why SERVICE_LOG_DIR cannot hold the logs of a data directory; undefined when it can. Changes nothing. */
export function logDirFault(dataDir: string, logDir: string): string | undefined {
  if (!existsSync(logDir)) return undefined
  const distrusted = distrustFolder(logDir)
  if (distrusted !== undefined) return distrusted
  const owner = readIfExists(join(logDir, OWNER))?.trim()
  if (owner === undefined) {
    const foreign = readdirSync(logDir).find(
      (name) => !emptyDisk.test(name) && name !== OWNER + unfinishedSuffix,
    )
    if (foreign === undefined) return undefined
    return `SERVICE_LOG_DIR is ${logDir}, which contains ${foreign}: use an empty folder, or one with logs`
  }
  if (owner === realpathSync(dataDir) || !leadsTo(owner, logDir)) return undefined
  return (
    `SERVICE_LOG_DIR is ${logDir}, which contains the logs of the data directory ${owner}: use one folder for each, ` +
    'and copy data with strandfast backup'
  )
}

function takeFolder(dataDir: string, logDir: string): string | undefined {
  const fault = logDirFault(dataDir, logDir)
  if (fault !== undefined) return fault
  makeDirectory(logDir)
  const text = `${realpathSync(dataDir)}\n`
  if (readIfExists(join(logDir, OWNER)) !== text) writeDurably(join(logDir, OWNER), text)
  return undefined
}

/**
 * Whether a store of a data directory has its log in a folder; false if the directory was moved or removed.
 */
function leadsTo(dataDir: string, logDir: string): boolean {
  const names = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => storePattern.test(name)) : []
  return names.some((name) => {
    const linked = linkOf(join(dataDir, name, logFolder))
    return (
      linked !== undefined && existsSync(linked) && realpathSync(dirname(linked)) === realpathSync(logDir)
    )
  })
}

/** Returns the target of a link; undefined for a folder or a missing path. */
function linkOf(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
    ? readlinkSync(path)
    : undefined
}

/** Completes or undoes an interrupted move. */
function recoverMove(store: string): void {
  const [logPath, moving] = [join(store, logFolder), join(store, MOVING)]
  if (!existsSync(moving)) return
  if (lstatSync(logPath, { throwIfNoEntry: false }) === undefined) renameSync(moving, logPath)
  else rmSync(moving, { recursive: true })
  syncDirectory(store)
}

/** Moves the log of a store to another folder, unless it is there. */
function moveOut(store: string, folder: string): void {
  const logPath = join(store, logFolder)
  if (existsSync(folder) && existsSync(logPath) && realpathSync(folder) === realpathSync(logPath)) return
  const before = linkOf(logPath)
  // The folder is a leftover of this program, because the store links elsewhere.
  rmSync(folder, { recursive: true, force: true })
  copyLog(logPath, folder)
  const link = logPath + unfinishedSuffix
  rmSync(link, { force: true })
  symlinkSync(folder, link, 'junction')
  if (before === undefined && existsSync(logPath)) renameSync(logPath, join(store, MOVING))
  renameSync(link, logPath)
  syncDirectory(store)
  rmSync(before ?? join(store, MOVING), { recursive: true, force: true })
}

/** Moves the log of a store beside it, unless it is there. */
function moveIn(store: string): void {
  const logPath = join(store, logFolder)
  const before = linkOf(logPath)
  if (before === undefined) return
  const copy = logPath + unfinishedSuffix
  rmSync(copy, { recursive: true, force: true })
  copyLog(logPath, copy)
  renameSync(copy, join(store, MOVING))
  syncDirectory(store)
  rmSync(logPath)
  renameSync(join(store, MOVING), logPath)
  syncDirectory(store)
  rmSync(before, { recursive: true, force: true })
}

/** Copies the files of a log to a new folder. They are on disk when this returns. */
function copyLog(from: string, to: string): void {
  makeDirectory(to)
  for (const name of existsSync(from) ? readdirSync(from) : []) {
    const file = join(to, name)
    copyFileSync(join(from, name), file)
    const fd = openSync(file, 'r+')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  }
  syncDirectory(to)
}
