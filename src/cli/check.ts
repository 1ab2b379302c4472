import { describeFaults, readProcessConfig } from '../settings/config.js'
import { exitCodes } from './exit-codes.js'
import { readOptions, showUsage } from './read-options.js'
import { warningsOf } from './warnings.js'

const USAGE = `Usage: strandfast check [--json]
Checks the settings in the environment without starting. --json prints {valid, faults, warnings}.
`

/**
 * Names every wrong setting at once.
 * @returns the exit code: 0 valid, 78 not valid or wrong usage
 */
export async function checkCommand(args: string[]): Promise<number> {
  const options = readOptions(args, { json: { type: 'boolean' } })
  if (!options.ok) return showUsage(USAGE, options)
  const reading = readProcessConfig()
  const warnings = await warningsOf(reading)
  const faults = reading.ok ? [] : reading.faults
  if (options.values.json === true) {
    const report = { valid: reading.ok, faults, warnings }
    process.stdout.write(`${JSON.stringify(report)}\n`)
  } else {
    process.stderr.write(warnings.map((warning) => `warning: ${warning}\n`).join(''))
    if (reading.ok) process.stdout.write(`configuration is valid${described(warnings.length)}\n`)
    else process.stderr.write(describeFaults(faults))
  }
  return reading.ok ? exitCodes.fine : exitCodes.configuration
}

/** That not all is well, where the last line is read alone. */
function described(warnings: number): string {
  if (warnings === 0) return ''
  return warnings === 1 ? ', with a warning' : `, with ${warnings} warnings`
}
