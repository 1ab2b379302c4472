import { describeFaults, readProcessConfig } from '../settings/config.js'
import { exitCodes } from './exit-codes.js'
import { readOptions, showUsage } from './read-options.js'

const USAGE = `Usage: strandfast check [--json]
Checks the settings in the environment without starting. --json prints {valid, faults, warnings}.
`

/**
 * Names every wrong setting at once.
 * @returns the exit code: 0 valid, 78 not valid or wrong usage
 */
export function checkCommand(args: string[]): number {
  const options = readOptions(args, { json: { type: 'boolean' } })
  if (!options.ok) return showUsage(USAGE, options)
  const reading = readProcessConfig()
  const faults = reading.ok ? [] : reading.faults
  if (options.values.json === true) {
    const report = { valid: reading.ok, faults, warnings: reading.warnings }
    process.stdout.write(`${JSON.stringify(report)}\n`)
  } else {
    process.stderr.write(reading.warnings.map((warning) => `warning: ${warning}\n`).join(''))
    if (reading.ok) process.stdout.write('configuration is valid\n')
    else process.stderr.write(describeFaults(faults))
  }
  return reading.ok ? exitCodes.fine : exitCodes.configuration
}
