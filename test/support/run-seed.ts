import { randomInt } from 'node:crypto'

/*
 * The one place that the chance of the tests comes from. `npm test` draws the same cases on every machine; CI, and the
 * long forms of the fault tests, draw others each time. STRANDFAST_SEED draws those of a seed again.
 */

/** What `npm test` draws from. */
const FIXED_SEED = 20_261_122

/** The seed of a whole run of the tests, drawn once where it begins (vitest.config.ts). */
export function seedOfRun(env: Readonly<Record<string, string | undefined>>): number {
  const given = env['STRANDFAST_SEED']
  if (given !== undefined) return checked(given)
  const isFresh = env['CI'] === 'true' || (env['STRANDFAST_FAULTS'] ?? 'short') !== 'short'
  return isFresh ? randomInt(2 ** 31) : FIXED_SEED
}

/** The seed of this run, which vitest.config.ts hands to each test file. */
export const seed = checked(process.env['STRANDFAST_SEED'] ?? String(FIXED_SEED))

/** The seed of this run, printed beside the name of what draws from it. */
export function runSeed(name: string): number {
  console.log(`${name}: STRANDFAST_SEED=${seed}`)
  return seed
}

function checked(text: string): number {
  const given = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(given))
    throw new Error(`Expected STRANDFAST_SEED to be an integer, not ${JSON.stringify(text)}`)
  return given
}
