import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'

/**
 * Runs a script with seeded random choices: prints the seed, and exits with 78 for unknown arguments and with
 * 1 for faults.
 * @template T
 * @param {object} script
 * @param {string} script.usage
 * @param {import('node:util').ParseArgsConfig['options']} script.options beside `--seed`
 * @param {(values: Record<string, any>, positionals: string[]) => T | undefined} script.read parses the
 * arguments; undefined if they are wrong
 * @param {(request: T & {seed: number, report: (line: string) => void}) => Promise<{faults: string[],
 * summary: string[]}>} script.run
 */
export async function seededRun({ usage, options, read, run }) {
  const request = readArguments(options, read)
  if (request === undefined) {
    process.stderr.write(`${usage}  --seed N    repeats a run (default: random)\n`)
    process.exitCode = 78
    return
  }
  const report = (line) => process.stdout.write(`${line}\n`)
  report(`seed ${request.seed}`)
  const { faults, summary } = await run({ ...request, report })
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
    const request = read(values, positionals)
    return request === undefined || !Number.isInteger(seed) ? undefined : { ...request, seed }
  } catch {
    return undefined
  }
}
