import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'
import type { HttpListener } from '../engine/http-listener.js'

/** The limit of connections, and what to call above it. */
export interface ConnectionBound {
  open: Quota
  /** Called when a connection was closed because of the limit; at most once a minute. */
  onFull(): void
}

/**
 * The most connections that leave enough file descriptors for stores, threads and pools that open later.
 * @param wanted the value of the setting
 * @returns at least `connectionsMin`, however low the limit of open files is; Infinity if nothing limits them
 */
export function connectionsMax(wanted: number | undefined, shards: number): number {
  const reserved =
    limits.descriptorsReserved +
    shards * limits.descriptorsPerShard +
    availableParallelism() * limits.descriptorsPerThread
  const available = Math.max(limits.connectionsMin, openFilesMax() - reserved)
  return Math.min(available, wanted ?? Infinity)
}

/**
 * The soft limit of open files of this process; Infinity if there is none or the platform does not show it
 * (only Linux does).
 */
function openFilesMax(): number {
  let text: string
  try {
    text = readFileSync('/proc/self/limits', 'utf8')
  } catch {
    return Infinity
  }
  const soft = /^Max open files +(\d+)/m.exec(text)?.[1]
  return soft === undefined ? Infinity : Number(soft)
}

/** All connections have one holder. */
const server = ''

/** Closes new connections above the limit before anything is read from them. */
export function boundConnections(listener: HttpListener, { open, onFull }: ConnectionBound): void {
  let loggedAtMs = -Infinity
  listener.onConnection((response, change) => {
    if (change < 0) open.release(server)
    if (change < 0 || open.reserveBeyond(server)) return
    response.close()
    const nowMs = performance.now()
    if (nowMs - loggedAtMs < limits.connectionsFullLogMs) return
    loggedAtMs = nowMs
    onFull()
  })
}
