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
  readIfThere,
  syncDirectory,
  unfinishedSuffix,
  writeDurably,
} from '../base/durable-file.js'
import { logFolder } from '../store-files/log-folder.js'
import { distrustFolder } from './trust.js'

/** A folder that is complete and about to become the log, or that was the log and is about to go. */
const MOVING = `${logFolder}.moving`

/** The file in SERVICE_LOG_DIR that says whose logs are there: the real path of a data directory. */
const OWNER = 'owner'

const storeName = /^shard-\d+(?:\.tmp)?$/

/** What a file system puts into an empty disk, and files that are hidden. */
const emptyDisk = /^(?:lost\+found|\..*)$/

/**
 * Has the logs of stores in the folder that SERVICE_LOG_DIR names, or, where it names none, beside their stores. Nobody
 * may have the stores open. A log is copied before its old folder goes: whenever the machine stops, one is complete.
 * @param stores paths of the folders of the stores, or of those that are about to become one
 * @returns a text says why that folder cannot be used
 * @throws Error of the file system
 */
export function placeLogs(
  dataDir: string,
  stores: readonly string[],
  logDir: string | undefined,
): string | undefined {
  const missing = stores.map((store) => linkOf(join(store, logFolder))).find((to) => to && !existsSync(to))
  if (missing !== undefined)
    return `The log of a store is missing, in ${missing}: expected its disk to be mounted`
  const fault = logDir === undefined ? undefined : takeFolder(dataDir, logDir)
  if (fault !== undefined) return fault
  for (const [shard, store] of stores.entries()) {
    settleMove(store)
    if (logDir === undefined) moveIn(store)
    else moveOut(store, join(logDir, `shard-${shard}`))
  }
  return undefined
}

/** Removes the folder of a store with its log, wherever that is. */
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
  const owner = readIfThere(join(logDir, OWNER))?.trim()
  if (owner === undefined) {
    const foreign = readdirSync(logDir).find(
      (name) => !emptyDisk.test(name) && name !== OWNER + unfinishedSuffix,
    )
    if (foreign === undefined) return undefined
    return `SERVICE_LOG_DIR names ${logDir}, which holds ${foreign}: expected an empty folder, or one that holds logs`
  }
  if (owner === realpathSync(dataDir) || !leadsTo(owner, logDir)) return undefined
  return (
    `SERVICE_LOG_DIR names ${logDir}, which holds the logs of the data directory ${owner}: give each its own folder, ` +
    'and make copies by strandfast backup'
  )
}

function takeFolder(dataDir: string, logDir: string): string | undefined {
  const fault = logDirFault(dataDir, logDir)
  if (fault !== undefined) return fault
  makeDirectory(logDir)
  const text = `${realpathSync(dataDir)}\n`
  if (readIfThere(join(logDir, OWNER)) !== text) writeDurably(join(logDir, OWNER), text)
  return undefined
}

/** Whether a store of a data directory has its log in a folder: not so when that directory was moved or is gone. */
function leadsTo(dataDir: string, logDir: string): boolean {
  const names = existsSync(dataDir) ? readdirSync(dataDir).filter((name) => storeName.test(name)) : []
  return names.some((name) => {
    const linked = linkOf(join(dataDir, name, logFolder))
    return (
      linked !== undefined && existsSync(linked) && realpathSync(dirname(linked)) === realpathSync(logDir)
    )
  })
}

/** Where a link leads; undefined for a folder, and where nothing is. */
function linkOf(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
    ? readlinkSync(path)
    : undefined
}

/** Completes or undoes a move that was cut off. */
function settleMove(store: string): void {
  const [place, moving] = [join(store, logFolder), join(store, MOVING)]
  if (!existsSync(moving)) return
  if (lstatSync(place, { throwIfNoEntry: false }) === undefined) renameSync(moving, place)
  else rmSync(moving, { recursive: true })
  syncDirectory(store)
}

/** Has the log of a store in a folder elsewhere, if it is not there. */
function moveOut(store: string, folder: string): void {
  const place = join(store, logFolder)
  if (existsSync(folder) && existsSync(place) && realpathSync(folder) === realpathSync(place)) return
  const before = linkOf(place)
  // What is there is ours and of no use: the store leads elsewhere.
  rmSync(folder, { recursive: true, force: true })
  copyLog(place, folder)
  const link = place + unfinishedSuffix
  rmSync(link, { force: true })
  symlinkSync(folder, link, 'junction')
  if (before === undefined && existsSync(place)) renameSync(place, join(store, MOVING))
  renameSync(link, place)
  syncDirectory(store)
  rmSync(before ?? join(store, MOVING), { recursive: true, force: true })
}

/** Has the log of a store beside it, if it is elsewhere. */
function moveIn(store: string): void {
  const place = join(store, logFolder)
  const before = linkOf(place)
  if (before === undefined) return
  const copy = place + unfinishedSuffix
  rmSync(copy, { recursive: true, force: true })
  copyLog(place, copy)
  renameSync(copy, join(store, MOVING))
  syncDirectory(store)
  rmSync(place)
  renameSync(join(store, MOVING), place)
  syncDirectory(store)
  rmSync(before, { recursive: true, force: true })
}

/** Copies the files of a log to a new folder; they are on disk when this returns. */
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
