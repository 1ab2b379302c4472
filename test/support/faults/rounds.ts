/*
 * Fault tests have three forms, by STRANDFAST_FAULTS: a short one, which every run of the tests has; `ci`, the suite with
 * the promised numbers of rounds, which `npm run test:faults` runs, and .ci/run together with all other tests; and `full`,
 * which goes on for hours.
 */

const form = process.env['STRANDFAST_FAULTS'] ?? 'short'
if (form !== 'short' && form !== 'ci' && form !== 'full')
  throw new Error(`Expected STRANDFAST_FAULTS to be short, ci or full, not ${form}`)

/** How much a fault test does in each form; in CI as much as in the short one, unless it is told. */
export function extent({ short, full, ci = short }: { short: number; full: number; ci?: number }): number {
  if (form === 'full') return full
  return form === 'ci' ? ci : short
}

/**
 * Runs many rounds in two series at once, as each waits for the disk about half of its time; a few in one.
 * @param series runs its share of the rounds, by chance of its own: `nth` is to be added to the seed
 */
export function sideBySide<Found>(
  rounds: number,
  series: (share: number, nth: number) => Promise<Found>,
): Promise<Found[]> {
  const shares = form === 'short' ? [rounds] : [Math.floor(rounds / 2), Math.ceil(rounds / 2)]
  return Promise.all(shares.map((share, nth) => series(share, nth)))
}

/** Whether a test whose tools are missing is to be left out: never in silence, and never where the whole suite is promised. */
export function leftOut(missing: string | undefined): boolean {
  if (missing === undefined || process.env['CI'] === 'true') return false
  console.warn(`Skipped: ${missing}`)
  return true
}
