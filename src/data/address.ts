import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { isFileSystemError, readIfThere, writeDurably } from '../base/durable-file.js'
import { rootKeyFile } from './directory.js'
import { addressFile, lockHolder } from './lock.js'
import { distrustOf } from './trust.js'

/*
 * Where the server of a data directory listens, so that commands on its machine find it, whatever settings or flags it
 * was started with. One that a killed server left counts for nothing: another process may listen on its port by now, and
 * the root key would be sent there. So the lock of the directory shows whether a server runs, and the process that takes the lock
 * removes what the last server noted.
 */

/** What commands on the server's own machine find in its data directory. */
export interface FoundServer {
  url?: string
  rootKey?: string
}

/** Notes where the server listens. @throws Error of the file system */
export function noteAddress(dataDir: string, url: string): void {
  writeDurably(join(dataDir, addressFile), `${url}\n`)
}

/** Removes the note, as the server stops. */
export function dropAddress(dataDir: string): void {
  try {
    rmSync(join(dataDir, addressFile), { force: true })
  } catch (error) {
    if (!isFileSystemError(error)) throw error
  }
}

/**
 * The address and the root key in a data directory, as far as this user may read them. Nothing of a directory where
 * another user could have put them, or that no process has locked: the key is sent to the address.
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
    return readIfThere(file)?.trim()
  } catch (error) {
    if (isFileSystemError(error)) return undefined
    throw error
  }
}
