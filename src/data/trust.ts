import { type Stats, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError } from '../base/durable-file.js'
import { logFolder } from '../store-files/log-folder.js'

/** Files of a data directory that are read or written before anything proves that they are ours. */
const files: readonly string[] = [
  'format.json',
  'lock',
  'master.seed',
  'root.key',
  'license-authority.seed',
  'address',
  'stream-tickets',
]
const folders = /^(?:shard-\d+|reshard)(?:\.tmp)?$/
const storeFile = 'data.mdb'

const ROOT = 0
const WRITE_BY_OTHERS = 0o022

/**
 * Why a data directory cannot be trusted: another user owns it or could have put files there. Whoever knows the master
 * seed or the root key of a directory can do everything that its server can. Windows has neither owners nor modes of
 * this kind.
 * @returns undefined when it can be used, or does not exist
 * @throws Error of the file system
 */
export function distrust(path: string): string | undefined {
  const user = process.geteuid?.()
  if (user === undefined) return undefined
  const directory = factsOf(path)
  if (directory === undefined) return undefined
  const fault = faultOf(path, user, 'directory')
  // Users who cannot write to the directory have put nothing into it.
  if (fault !== undefined || !directory.isDirectory()) return fault
  for (const name of readdirSync(path)) {
    const inside = join(path, name)
    const found = files.includes(name)
      ? faultOf(inside, user, 'file')
      : folders.test(name)
        ? (faultOf(inside, user, 'directory') ??
          faultOf(join(inside, storeFile), user, 'store') ??
          logFault(join(inside, logFolder), user))
        : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** Like `distrust`; an error of the file system is a reason too. */
export function distrustOf(path: string): string | undefined {
  try {
    return distrust(path)
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return `The data directory ${path} cannot be used: ${error.message}`
  }
}

/** Why a folder cannot be trusted for logs: like `distrust`. */
export function distrustFolder(path: string): string | undefined {
  const user = process.geteuid?.()
  return user === undefined ? undefined : faultOf(path, user, 'directory')
}

/** A start takes over whatever is whole in the log: whoever writes there is whom it obeys. */
function logFault(path: string, user: number): string | undefined {
  const folder = faultOf(path, user, 'directory')
  if (folder !== undefined || factsOf(path) === undefined) return folder
  for (const name of readdirSync(path)) {
    const fault = faultOf(join(path, name), user, 'file')
    if (fault !== undefined) return fault
  }
  return undefined
}

function faultOf(path: string, user: number, kind: 'directory' | 'file' | 'store'): string | undefined {
  const facts = factsOf(path)
  if (facts === undefined) return undefined
  const { uid, mode } = facts
  if (kind === 'directory' ? !facts.isDirectory() : !facts.isFile()) return `Expected ${path} to be a ${kind}`
  if (uid !== user && uid !== ROOT) {
    return (
      `${path} belongs to user ${uid}, and this process is user ${user}: use a data directory of its own user, or give ` +
      `this one to it by chown -R, if nobody else could write there`
    )
  }
  // LMDB makes its files writable for a group, in a folder that only their owner can enter.
  if (kind === 'store' || (mode & WRITE_BY_OTHERS) === 0) return undefined
  return (
    `Others than its owner can write to ${path} (mode ${(mode & 0o777).toString(8)}): take that from them by ` +
    `chmod go-w ${path}, if nobody else wrote there`
  )
}

function factsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    // If the path does not exist, there is nothing to read.
    if (isFileSystemError(error) && error.code === 'ENOTDIR') return undefined
    throw error
  }
}
