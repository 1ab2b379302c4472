import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError, readIfExists, writeDurably } from '../base/durable-file.js'
import { rootKeyFile } from './directory.js'
import { addressFile, lockHolder } from './lock.js'
import { distrustOf } from './trust.js'

/*
 * The address of a data directory's server, so that commands on its machine find it. The address of a killed
 * server must not be used, because another process may listen on its port and would receive the root key. So
 * the lock of the directory shows whether a server runs, and the process that takes the lock removes the old
 * address.
 */

/** What a command on the server's machine finds in the data directory. */
export interface FoundServer {
  url?: string
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
  if (distrustOf(dataDir) !== undefined || !isLocked(dataDir)) return {}
  const url = readable(join(dataDir, addressFile))
  const rootKey = readable(join(dataDir, rootKeyFile))
  return {
    ...(url !== undefined && /^https?:\/\/\S+$/.test(url) && URL.canParse(url) && { url }),
    ...(rootKey !== undefined && /^[\x21-\x7e]{32,512}$/.test(rootKey) && { rootKey }),
  }
}

function isLocked(dataDir: string): boolean {
  try {
    return lockHolder(dataDir) !== undefined
  } catch (error) {
    if (isFileSystemError(error)) return false
    throw error
  }
}

function readable(file: string): string | undefined {
  try {
    return readIfExists(file)?.trim()
  } catch (error) {
    if (isFileSystemError(error)) return undefined
    throw error
  }
}
