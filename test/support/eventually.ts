import { setTimeout as pause } from 'node:timers/promises'

/** The first and the longest pause between two looks, milliseconds: what comes soon is seen soon, and the rest costs little. */
const [FIRST_MS, LONGEST_MS] = [5, 100]

/**
 * Resolves once `holds` does. The outer time limit of the test ends the waiting, so that no test depends on how long
 * the machine takes; only use it for what nothing reports.
 */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let ms = FIRST_MS; !(await holds()); ms = Math.min(LONGEST_MS, 1.5 * ms)) await pause(ms)
}
