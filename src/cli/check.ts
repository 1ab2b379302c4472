import { describeFaults } from '../settings/config.js'
import { exitCodes, showUsage } from './command.js'
import { readSettings, warningsOf } from './read-settings.js'

const USAGE = `Usage: strandfast check [--json] [--SETTING VALUE…]
Checks the settings given in the environment and as flags, without starting a server. --json prints {valid, faults, warnings}.
`

/**
 * Checks the settings and lists every invalid one.
 * @returns the exit code: 0 valid, 78 invalid settings or wrong usage
 */
export async function checkCommand(args: string[]): Promise<number> {
  const json = args.includes('--json')
  const options = await readSettings(args.filter((arg) => arg !== '--json'))
  if (!options.ok) return showUsage(USAGE, options)
  const { reading } = options
  const warnings = await warningsOf(reading)
  const faults = reading.ok ? [] : reading.faults
  if (json) {
    const report = { valid: reading.ok, faults, warnings }
    process.stdout.write(`${JSON.stringify(report)}\n`)
  } else {
    process.stderr.write(warnings.map((warning) => `warning: ${warning}\n`).join(''))
    if (reading.ok) process.stdout.write(`configuration is valid${warningSuffix(warnings.length)}\n`)
    else process.stderr.write(describeFaults(faults))
  }
  return reading.ok ? exitCodes.fine : exitCodes.configuration
}

function warningSuffix(warnings: number): string {
  if (warnings === 0) return ''
  return warnings === 1 ? ', with a warning' : `, with ${warnings} warnings`
}
