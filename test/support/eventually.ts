import { setTimeout as pause } from 'node:timers/promises'

/**
 * Resolves once `holds` does. The outer time limit of the test ends the waiting, so that no test depends on how long
 * the machine takes; only use it for what nothing tells of.
 */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(20)
}
