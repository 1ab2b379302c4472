import {
  type Config,
  type ConfigReading,
  describeFaults,
  readProcessConfig,
  settings,
} from '../settings/config.js'
import { licenseStanding } from '../auth/license.js'
import { systemClock } from '../base/clock.js'
import { isFileSystemError } from '../base/durable-file.js'
import { authorityPublicKey } from '../data/license-authority.js'
import { exitCodes, isHelp, parseOnce } from './command.js'
import type { ParseArgsConfig } from 'node:util'
import { nearestName } from '../settings/nearest-name.js'
import type { Environment, Setting, SettingFault } from '../settings/setting.js'

/** The settings by which a command runs, or the exit code it ends with at once. */
export type ReadSettings = { ok: true; reading: ConfigReading } | { ok: false; help: boolean; fault: string }

/** The settings of a command that takes `--data-dir` beside arguments of its own. */
export function settingsOf(dataDir: string | undefined): ConfigReading {
  return readProcessConfig(dataDir === undefined ? {} : { SERVICE_DATA_DIR: dataDir })
}

/** The same, or the exit code where they are wrong, which is said. */
export function configOf(dataDir: string | undefined): Config | number {
  const reading = settingsOf(dataDir)
  if (reading.ok) return reading.config
  process.stderr.write(describeFaults(reading.faults))
  return exitCodes.configuration
}

/** Reads the settings of the environment and those given as flags, which take precedence. `--help` ends it. */
export function readSettings(args: readonly string[]): ReadSettings {
  if (isHelp(args)) return { ok: false, help: true, fault: '' }
  const flags = readFlags(args)
  if (!flags.ok) return { ok: false, help: false, fault: flags.fault }
  const reading = readProcessConfig(flags.given)
  if (reading.ok) return { ok: true, reading }
  return { ok: true, reading: { ...reading, faults: namedByFlags(reading.faults, flags.given) } }
}

/** The warnings about the settings, with that about a license that does not hold. Sentences without a full stop. */
export async function warningsOf(reading: ConfigReading): Promise<string[]> {
  if (!reading.ok) return reading.warnings
  const { auth, dataDir } = reading.config
  // That no license is set is among the warnings already.
  if (!auth.enabled || auth.licenseKey === undefined) return reading.warnings
  try {
    const publicKey = auth.licensePublicKey ?? authorityPublicKey(dataDir)
    const { licenseKey } = auth
    const standing = await licenseStanding({ licenseKey, publicKey, nowMs: systemClock() })
    return standing.state === 'valid' ? reading.warnings : [...reading.warnings, standing.detail]
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return [...reading.warnings, `SERVICE_LICENSE_KEY cannot be checked: ${error.message}`]
  }
}

/*
 * Every setting as a flag of the command line: SERVICE_DATA_DIR is --data-dir. Secrets have none, since every user of
 * the machine sees the arguments of a process.
 */

/** Flags as settings, or what is wrong with them. */
type FlagReading = { ok: true; given: Environment } | { ok: false; fault: string }

const list: readonly Setting<unknown>[] = Object.values(settings)
const byFlag = new Map(list.map((setting) => [flagOf(setting.name), setting]))

/** The flag of a setting, with its two hyphens. */
export function flagOf(name: string): string {
  return `--${name
    .replace(/^SERVICE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')}`
}

/**
 * Reads arguments that are flags of settings alone. A flag of true or false may stand alone, for true.
 * @returns the settings by their names, to be given precedence over the environment
 */
export function readFlags(args: readonly string[]): FlagReading {
  const unknown = args.map((arg) => faultOf(arg)).find((fault) => fault !== undefined)
  if (unknown !== undefined) return { ok: false, fault: unknown }
  const options: NonNullable<ParseArgsConfig['options']> = {}
  for (const flag of byFlag.keys()) options[flag.slice(2)] = { type: 'string' }
  try {
    const { values } = parseOnce({ args: spelledOut(args), options })
    const given: Environment = {}
    for (const [flag, { name }] of byFlag) {
      const value = values[flag.slice(2)]
      if (typeof value === 'string') given[name] = value
    }
    return { ok: true, given }
  } catch (error) {
    return { ok: false, fault: error instanceof Error ? error.message : String(error) }
  }
}

/** Faults whose settings came from flags, named by these. */
export function namedByFlags(faults: readonly SettingFault[], given: Environment): SettingFault[] {
  return faults.map((fault) =>
    given[fault.name] === undefined ? fault : { ...fault, name: flagOf(fault.name) },
  )
}

/** The flags, one a line, for the usage of a command. */
export function describeFlags(): string {
  const shown = list.filter(({ secret }) => secret !== true)
  return shown.map(({ name, allowed }) => `  ${flagOf(name).padEnd(34)} ${allowed}\n`).join('')
}

function faultOf(arg: string): string | undefined {
  if (!arg.startsWith('--')) return undefined
  const [flag = ''] = arg.split('=')
  const setting = byFlag.get(flag)
  if (setting === undefined) {
    const nearest = nearestName(flag, [...byFlag.keys()])
    return `Unknown option ${flag}${nearest === undefined ? '' : ` (was ${nearest} meant?)`}`
  }
  if (setting.secret !== true) return undefined
  return `${flag} is a secret, which every user would see among the processes of the machine, so set ${setting.name}`
}

/** The arguments with the value of each flag that stands alone. */
function spelledOut(args: readonly string[]): string[] {
  return args.map((arg, place) => {
    const isSwitch = typeof byFlag.get(arg)?.default === 'boolean'
    return isSwitch && (args[place + 1] ?? '--').startsWith('--') ? `${arg}=true` : arg
  })
}
