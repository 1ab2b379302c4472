/**
 * Runs a server under a steady load of every kind for some minutes, and ends with 1 unless its memory, its handles, its
 * threads and its files stay flat.
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { soak } from './soak/run.mjs'

const usage = `Usage: npm run soak -- [MINUTES] [--rate N] [--seed N]
  MINUTES  how long (60)
  --rate   records a second (1000): no more than the machine sustains
  --seed   repeats a run's load (random)
`

const options = readOptions()
if (options === undefined) {
  process.stderr.write(usage)
  process.exitCode = 78
} else {
  process.stdout.write(`seed ${options.seed}\n`)
  const report = (line) => process.stdout.write(`${line}\n`)
  const { verdicts, faults, records, skipped } = await soak({ ...options, report })
  for (const { name, found, most, unit, flat } of verdicts) {
    report(`${flat ? 'flat ' : 'GROWS'} ${name}: ${found.toFixed(2)} ${unit} (at most ${most})`)
  }
  for (const fault of faults) process.stderr.write(`FAULT: ${fault}\n`)
  report(`${records} records, ${skipped} times behind`)
  process.exitCode = faults.length === 0 && verdicts.every(({ flat }) => flat) ? 0 : 1
}

function readOptions() {
  try {
    const options = { rate: { type: 'string' }, seed: { type: 'string' } }
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    const minutes = Number(positionals[0] ?? 60)
    const rate = Number(values.rate ?? 1_000)
    const seed = Number(values.seed ?? randomInt(2 ** 31))
    const good = minutes > 0 && rate >= 20 && Number.isInteger(seed) && positionals.length < 2
    return good ? { minutes, rate, seed } : undefined
  } catch {
    return undefined
  }
}
