import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { limits } from '../base/limits.js'
import type { TemplatedApp } from './uws.js'

/** How many connections there can be, and what is said when there are as many. */
export interface ConnectionBound {
  max: number
  /** Called when a connection was closed because there were too many; at most once a minute. */
  onFull(): void
}

/**
 * How many connections the process can have without taking the descriptors that stores, threads and pools open later.
 * @param wanted what the setting says
 * @returns at least `connectionsMin`, however few files may be open; Infinity where nothing bounds them
 */
export function connectionsMax(wanted: number | undefined, shards: number): number {
  const own =
    limits.descriptorsReserved +
    shards * limits.descriptorsPerShard +
    availableParallelism() * limits.descriptorsPerThread
  const room = Math.max(limits.connectionsMin, openFilesMax() - own)
  return Math.min(room, wanted ?? Infinity)
}

/** The soft limit of open files of this process; Infinity where there is none or the platform does not say (Linux). */
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

/** Closes connections that are too many as they come, before anything is read of them. */
export function boundConnections(app: TemplatedApp, { max, onFull }: ConnectionBound): void {
  let open = 0
  let saidAtMs = -Infinity
  app.filter((response, change) => {
    open += change
    if (change < 0 || open <= max) return
    response.close()
    const nowMs = performance.now()
    if (nowMs - saidAtMs < limits.connectionsFullLogMs) return
    saidAtMs = nowMs
    onFull()
  })
}
