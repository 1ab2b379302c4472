import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'

/**
 * Runs a script whose random choices follow from a seed: prints the seed, and ends with 78 for unknown arguments, and
 * with 1 when anything is wrong.
 * @template T
 * @param {object} script
 * @param {string} script.usage
 * @param {import('node:util').ParseArgsConfig['options']} script.options beside `--seed`
 * @param {(values: Record<string, any>, positionals: string[]) => T | undefined} script.read what the arguments ask for;
 *   nothing when they are wrong
 * @param {(asked: T & {seed: number, report: (line: string) => void}) => Promise<{faults: string[], summary: string[]}>} script.run
 */
export async function seededRun({ usage, options, read, run }) {
  const asked = readArguments(options, read)
  if (asked === undefined) {
    process.stderr.write(`${usage}  --seed N    repeats a run (random)\n`)
    process.exitCode = 78
    return
  }
  const report = (line) => process.stdout.write(`${line}\n`)
  report(`seed ${asked.seed}`)
  const { faults, summary } = await run({ ...asked, report })
  for (const line of summary) report(line)
  for (const fault of faults) process.stderr.write(`FAULT: ${fault}\n`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

function readArguments(options, read) {
  try {
    const { values, positionals } = parseArgs({
      options: { ...options, seed: { type: 'string' } },
      allowPositionals: true,
    })
    const seed = Number(values.seed ?? randomInt(2 ** 31))
    const asked = read(values, positionals)
    return asked === undefined || !Number.isInteger(seed) ? undefined : { ...asked, seed }
  } catch {
    return undefined
  }
}
