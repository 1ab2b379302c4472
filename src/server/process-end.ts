import { setTimeout as pause } from 'node:timers/promises'
import { limits } from '../base/limits/limits.js'
import type { Control } from '../data/backup/control.js'
import type { Fronts } from './fronts/fronts.js'
import type { Parts } from './parts.js'

/** What has threads. */
export interface EndingParts extends Pick<Parts, 'threads' | 'pools' | 'sink'> {
  control: Control
  fronts: Fronts | undefined
}

/**
 * Ends the process even if threads hang: with the exit code given once all have ended. An exit ends those that are left from outside, and
 * the process crashes or waits for ever where one is in a native call. So if one stays, the process kills itself.
 */
export async function endProcess(
  { threads, pools, sink, control, fronts }: EndingParts,
  code: number,
): Promise<void> {
  const all = [
    threads.abandon(),
    fronts?.close(),
    sink?.stop(),
    control.close(),
    ...pools.map((pool) => pool.close()),
  ]
  const ended = Promise.all(all).then(
    () => true,
    () => false,
  )
  const isOver = !threads.isStuck && (await Promise.race([ended, pause(limits.processEndMs, false)]))
  if (isOver) process.exit(code)
  process.kill(process.pid, 'SIGKILL')
  // The first process of a container is not killed by a signal of its own.
  process.abort()
}
