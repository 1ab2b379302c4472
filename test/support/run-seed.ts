/*
 * The one source of random choices in tests. `npm test` and CI make the same choices on every machine. A campaign sets
 * STRANDFAST_SEED anew for each pass (scripts/campaign.mjs); the same variable repeats one.
 */

const FIXED_SEED = 20_261_122

/** The seed of this run: a whole number. */
export const seed = checked(process.env['STRANDFAST_SEED'] ?? String(FIXED_SEED))

/** The seed of this run, printed beside the name of the test that draws from it. */
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
