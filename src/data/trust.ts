import { type Stats, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError } from '../base/durable-file.js'
import { logFolder } from '../store-files/log-folder.js'

/** Files of a data directory that are used before anything proves that this program wrote them. */
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
const OTHERS_WRITE = 0o022

/**
 * Why a data directory cannot be trusted: another user owns it or could have put files there. Its master seed
 * and root key allow everything that its server can do. Windows has no such owners and modes.
 * @returns undefined when it can be used, or does not exist
 * @throws Error of the file system
 */
export function distrust(path: string): string | undefined {
  const user = process.geteuid?.()
  if (user === undefined) return undefined
  const directory = factsOf(path)
  if (directory === undefined) return undefined
  const fault = faultOf(path, user, 'directory')
  // Users without write access have put nothing into the directory.
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

/** A start replays every complete entry of the log, so a user who can write there controls the server. */
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
      `${path} belongs to user ${uid}, and this process is user ${user}: use a data directory of this user, or run ` +
      `chown -R on this one if no other user could write there`
    )
  }
  // LMDB creates its files writable for the group, in a folder that only the owner can enter.
  if (kind === 'store' || (mode & OTHERS_WRITE) === 0) return undefined
  return (
    `Other users can write to ${path} (mode ${(mode & 0o777).toString(8)}): run ` +
    `chmod go-w ${path} if no other user wrote there`
  )
}

function factsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    // The path does not exist.
    if (isFileSystemError(error) && error.code === 'ENOTDIR') return undefined
    throw error
  }
}
