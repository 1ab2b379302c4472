import { appendFileSync } from 'node:fs'

/**
 * Runs rounds in two parallel series, because each waits for the disk about half of its time.
 * @param series runs its share of the rounds, and must add `nth` to the seed
 */
export function sideBySide<Found>(
  rounds: number,
  series: (share: number, nth: number) => Promise<Found>,
): Promise<Found[]> {
  const shares = [Math.floor(rounds / 2), Math.ceil(rounds / 2)]
  return Promise.all(shares.map((share, nth) => series(share, nth)))
}

/**
 * Adds counts to those of the campaign that runs the test (scripts/campaign.mjs); without a campaign, prints
 * them.
 */
export function count(numbers: Readonly<Record<string, number>>): void {
  const file = process.env['STRANDFAST_COUNTS']
  if (file === undefined) console.log(JSON.stringify(numbers))
  else appendFileSync(file, `${JSON.stringify(numbers)}\n`)
}

/** Whether to skip a test because its tools are missing: with a warning, and never in CI. */
export function leftOut(missing: string | undefined): boolean {
  if (missing === undefined || process.env['CI'] === 'true') return false
  console.warn(`Skipped: ${missing}`)
  return true
}
