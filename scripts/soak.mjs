/**
 * Runs a server under a steady load of every kind for some minutes, and ends with 1 unless its memory, its handles, its
 * threads and its files stay flat.
 */
import { seededRun } from './seeded-run.mjs'
import { soak } from './soak/run.mjs'

await seededRun({
  usage: `Usage: npm run soak -- [MINUTES] [--rate N] [--seed N]
  MINUTES     how long (60)
  --rate N    records a second (1000): no more than the machine sustains
`,
  options: { rate: { type: 'string' } },
  read({ rate: given = '1000' }, positionals) {
    const minutes = Number(positionals[0] ?? 60)
    const rate = Number(given)
    return minutes > 0 && rate >= 20 && positionals.length < 2 ? { minutes, rate } : undefined
  },
  async run(asked) {
    const { verdicts, faults, records, skipped } = await soak(asked)
    const grown = verdicts.filter(({ flat }) => !flat).map(({ name }) => `${name} grows`)
    return {
      faults: [...faults, ...grown],
      summary: [
        ...verdicts.map(
          ({ name, found, most, unit, flat }) =>
            `${flat ? 'flat ' : 'GROWS'} ${name}: ${found.toFixed(2)} ${unit} (at most ${most})`,
        ),
        `${records} records, ${skipped} times behind`,
      ],
    }
  },
})
