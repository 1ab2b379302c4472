/**
 * Runs a server under a steady load of every kind for some minutes, killed now and then if that is asked for, and ends with
 * 1 unless its memory, its handles, its threads and its files stay flat and nothing is lost that it answered.
 */
import { seededRun } from './seeded-run.mjs'
import { soak } from './soak/run.mjs'

await seededRun({
  usage: `Usage: npm run soak -- [MINUTES] [--rate N] [--crash-every SECS] [--seed N]
  MINUTES     how long (60)
  --rate N    records a second (1000): no more than the machine sustains
  --crash-every SECS
              kills the server so often, and starts it again
`,
  options: { rate: { type: 'string' }, 'crash-every': { type: 'string' } },
  read({ rate: given = '1000', 'crash-every': crashes }, positionals) {
    const minutes = Number(positionals[0] ?? 60)
    const rate = Number(given)
    const crashEverySecs = crashes === undefined ? undefined : Number(crashes)
    const isGood = minutes > 0 && rate >= 20 && positionals.length < 2 && !(crashEverySecs <= 0)
    return isGood && !Number.isNaN(crashEverySecs) ? { minutes, rate, crashEverySecs } : undefined
  },
  async run(asked) {
    const { verdicts, faults, records, skipped, starts } = await soak(asked)
    const grown = verdicts.filter(({ flat }) => !flat).map(({ name }) => `${name} grows`)
    return {
      faults: [...faults, ...grown],
      summary: [
        ...verdicts.map(
          ({ name, found, most, unit, flat }) =>
            `${flat ? 'flat ' : 'GROWS'} ${name}: ${found.toFixed(2)} ${unit} (at most ${most})`,
        ),
        ...startsOf(starts),
        `${records} records, ${skipped} times behind`,
      ],
    }
  },
})

/** How long starts after crashes took. */
function startsOf(starts) {
  if (starts.length === 0) return []
  const took = starts.map(({ tookSecs }) => tookSecs).sort((one, other) => one - other)
  const median = took[Math.floor(took.length / 2)] ?? 0
  return [`${took.length} crashes; starts of ${median.toFixed(2)} s, ${took.at(-1)?.toFixed(2)} s at most`]
}
