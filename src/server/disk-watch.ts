import { limits } from '../base/limits.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import { freeBytes } from '../data-directory/data-directory.js'

/** What requests are refused by. */
export interface ServerState {
  stopping: boolean
  readOnly: boolean
}

/** Below the mark the server only reads: LMDB reports a full disk as an I/O error, when it is too late to answer well. */
export function watchDisk(
  { freeBytesMin, dataDir }: Config,
  state: ServerState,
  log: Logger,
): NodeJS.Timeout {
  const look = () => {
    const free = freeBytes(dataDir)
    const readOnly = freeBytesMin > 0 && free < freeBytesMin
    if (readOnly !== state.readOnly)
      log.warn({ free_bytes: free, read_only: readOnly }, 'free space crossed its mark')
    state.readOnly = readOnly
  }
  look()
  return setInterval(look, limits.diskWatchMs)
}
