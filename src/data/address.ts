import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError, readIfExists, writeDurably } from '../base/durable-file.js'
import { rootKeyFile } from './directory.js'
import { addressFile, lockFile, lockHolder } from './lock.js'
import { distrustOf } from './trust.js'

/*
 * The address of a data directory's server, so that commands on its machine find it. The address of a killed
 * server must not be used, because another process may listen on its port and would receive the root key. So
 * the lock of the directory shows whether a server runs, and the process that takes the lock removes the old
 * address.
 */

/** What a command on the server's machine finds in the data directory. */
export interface FoundServer {
  /** Absent if there is a `fault`. */
  url?: string
  /** Why there is no server to use, in one sentence without a full stop. */
  fault?: string
  rootKey?: string
}

/** Writes the address of the server. @throws Error of the file system */
export function noteAddress(dataDir: string, url: string): void {
  writeDurably(join(dataDir, addressFile), `${url}\n`)
}

/** Removes the address when the server stops. */
export function dropAddress(dataDir: string): void {
  try {
    rmSync(join(dataDir, addressFile), { force: true })
  } catch (error) {
    if (!isFileSystemError(error)) throw error
  }
}

/**
 * Reads the address and the root key of a data directory, as far as this user may read them. Returns neither
 * if another user could have written them or no process has the lock, because the key is sent to the address.
 */
export function findServer(dataDir: string): FoundServer {
  try {
    const fault = distrustOf(dataDir) ?? faultOfLock(dataDir)
    if (fault !== undefined) return { fault }
    const url = readIfExists(join(dataDir, addressFile))?.trim()
    if (url === undefined || !/^https?:\/\/\S+$/.test(url) || !URL.canParse(url))
      return { fault: `The server of the data directory ${dataDir} does not accept requests yet` }
    const rootKey = readable(join(dataDir, rootKeyFile))
    return { url, ...(rootKey !== undefined && /^[\x21-\x7e]{32,512}$/.test(rootKey) && { rootKey }) }
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return { fault: `The data directory ${dataDir} cannot be read: ${error.message}` }
  }
}

function faultOfLock(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return `There is no data directory ${dataDir}`
  const isLocked = existsSync(join(dataDir, lockFile)) && lockHolder(dataDir) !== undefined
  return isLocked ? undefined : `No server runs with the data directory ${dataDir}`
}

function readable(file: string): string | undefined {
  try {
    return readIfExists(file)?.trim()
  } catch (error) {
    if (isFileSystemError(error)) return undefined
    throw error
  }
}
