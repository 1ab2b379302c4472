import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { limits } from '../../base/limits/limits.js'
import type { HttpDoor } from '../door/door.js'
import type { Count } from './shares.js'

/** How many connections there can be, and who is told when there are more. */
export interface ConnectionBound {
  max: number
  /** The connections of all fronts. */
  open: Count
  /** Called when a connection was closed because there were too many; at most once a minute. */
  onFull(): void
}

/**
 * How many connections the process can have and still leave descriptors for what stores, threads and pools open later.
 * @param wanted the value of the setting
 * @returns at least `connectionsMin`, however few files may be open; Infinity if nothing limits them
 */
export function connectionsMax(wanted: number | undefined, shards: number): number {
  const own =
    limits.descriptorsReserved +
    shards * limits.descriptorsPerShard +
    availableParallelism() * limits.descriptorsPerThread
  const room = Math.max(limits.connectionsMin, openFilesMax() - own)
  return Math.min(room, wanted ?? Infinity)
}

/**
 * The soft limit of open files of this process; Infinity if there is none, or on a platform that does not show it (only
 * Linux does).
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

/** Closes connections over the bound as they arrive, before anything is read from them. */
export function boundConnections(door: HttpDoor, { max, open, onFull }: ConnectionBound): void {
  let saidAtMs = -Infinity
  door.onConnection((response, change) => {
    const count = open.add(change)
    if (change < 0 || count <= max) return
    response.close()
    const nowMs = performance.now()
    if (nowMs - saidAtMs < limits.connectionsFullLogMs) return
    saidAtMs = nowMs
    onFull()
  })
}
