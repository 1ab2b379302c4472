/*
 * The only source of random choices in tests. `npm test` and CI make the same choices on every machine. A
 * campaign sets a new STRANDFAST_SEED for each pass (scripts/campaign.mjs); the same value repeats a pass.
 */

const FIXED_SEED = 20_261_122

/** The seed of this run, an integer. */
export const seed = checked(process.env['STRANDFAST_SEED'] ?? String(FIXED_SEED))

/** Returns the seed of this run and prints it with the name of the test that uses it. */
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

/** The rounds of this run: `few`, or in a campaign as many as it names (scripts/campaign/parts.mjs). */
export function roundsOf(few: number): number {
  return Number(process.env['STRANDFAST_ROUNDS'] ?? few)
}
