import { appendFileSync } from 'node:fs'

/**
 * Runs rounds in two series side by side, as each waits for the disk about half of its time.
 * @param series runs its share of the rounds with random choices of its own: `nth` is to be added to the seed
 */
export function sideBySide<Found>(
  rounds: number,
  series: (share: number, nth: number) => Promise<Found>,
): Promise<Found[]> {
  const shares = [Math.floor(rounds / 2), Math.ceil(rounds / 2)]
  return Promise.all(shares.map((share, nth) => series(share, nth)))
}

/** Adds what a test did to the numbers of the campaign that runs it (scripts/campaign.mjs); prints them elsewhere. */
export function count(numbers: Readonly<Record<string, number>>): void {
  const file = process.env['STRANDFAST_COUNTS']
  if (file === undefined) console.log(JSON.stringify(numbers))
  else appendFileSync(file, `${JSON.stringify(numbers)}\n`)
}

/** Whether a test whose tools are missing is left out: always with a warning, and never in CI. */
export function leftOut(missing: string | undefined): boolean {
  if (missing === undefined || process.env['CI'] === 'true') return false
  console.warn(`Skipped: ${missing}`)
  return true
}
