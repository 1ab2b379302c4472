import { setTimeout as pause } from 'node:timers/promises'

/**
 * The first and the longest pause between two checks, milliseconds. Pauses grow, so that early results are
 * seen soon and later checks cost little.
 */
const [FIRST_MS, LONGEST_MS] = [5, 100]

/**
 * Resolves when `holds` returns true. There is no time limit except that of the test, so that no test depends
 * on the speed of the machine. Use it only if no event reports the change.
 */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let ms = FIRST_MS; !(await holds()); ms = Math.min(LONGEST_MS, 1.5 * ms)) await pause(ms)
}
