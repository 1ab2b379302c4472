import { randomInt } from 'node:crypto'

/*
 * Fault tests have two forms: a short one, which every run of the tests has, and a full one, which
 * `npm run test:faults` runs.
 */

const isFull = process.env['STRANDFAST_FAULTS'] === 'full'

/** How much a fault test does, in its short and its full form. */
export function extent({ short, full }: { short: number; full: number }): number {
  return isFull ? full : short
}

/** A seed of a run: STRANDFAST_SEED to run one again, else by chance. It is printed. */
export function runSeed(name: string): number {
  const given = process.env['STRANDFAST_SEED']
  const seed = given === undefined ? randomInt(2 ** 31) : Number(given)
  console.log(`${name}: STRANDFAST_SEED=${seed}`)
  return seed
}

/** Whether a test whose tools are missing is to be left out: never in silence, and never where the whole suite is promised. */
export function leftOut(missing: string | undefined): boolean {
  if (missing === undefined || process.env['CI'] === 'true') return false
  console.warn(`Skipped: ${missing}`)
  return true
}
