import type { ParseArgsConfig } from 'node:util'
import { settings } from './config.js'
import { nearestName } from './nearest-name.js'
import { parseOnce } from './parse-once.js'
import type { Environment, Setting, SettingFault } from './setting.js'

/*
 * Every setting as a flag of the command line: SERVICE_DATA_DIR is --data-dir. Secrets have none, since every user of
 * the machine sees the arguments of a process.
 */

/** Flags as settings, or what is wrong with them. */
export type FlagReading = { ok: true; given: Environment } | { ok: false; fault: string }

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
