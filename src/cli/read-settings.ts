import {
  type Config,
  type ConfigReading,
  describeFaults,
  readProcessConfig,
  settings,
} from '../settings/config.js'
import { licenseStatus } from '../auth/license.js'
import { systemClock } from '../base/clock.js'
import { isFileSystemError } from '../base/durable-file.js'
import { authorityPublicKey } from '../data/license-authority.js'
import { loadEngine, tlsRefusal } from '../front/engine/engine.js'
import { exitCodes, isHelp, parseOnce } from './command.js'
import type { ParseArgsConfig } from 'node:util'
import { validityWarnings } from '../settings/tls-files.js'
import { nearestName } from '../settings/nearest-name.js'
import type { Environment, Setting, SettingFault } from '../settings/setting.js'

/** The settings of a command; or that its usage was requested, or what is wrong with its flags. */
type ReadSettings = { ok: true; reading: ConfigReading } | { ok: false; help: boolean; fault: string }

/** Reads the settings of a command that takes no settings as flags but `--data-dir`. */
export function settingsOf(dataDir: string | undefined): ConfigReading {
  return readProcessConfig(dataDir === undefined ? {} : { SERVICE_DATA_DIR: dataDir })
}

/** Like `settingsOf`, but prints the faults. @returns the settings, or an exit code if they are invalid */
export function configOf(dataDir: string | undefined): Config | number {
  const reading = settingsOf(dataDir)
  if (reading.ok) return reading.config
  process.stderr.write(describeFaults(reading.faults))
  return exitCodes.configuration
}

/**
 * Reads the settings from the environment and from flags, which take precedence, and checks that the HTTP
 * library accepts the certificate. With `--help`, nothing is read.
 */
export async function readSettings(args: readonly string[]): Promise<ReadSettings> {
  if (isHelp(args)) return { ok: false, help: true, fault: '' }
  const flags = readFlags(args)
  if (!flags.ok) return { ok: false, help: false, fault: flags.fault }
  const reading = await withTlsChecked(readProcessConfig(flags.given))
  if (reading.ok) return { ok: true, reading }
  return { ok: true, reading: { ...reading, faults: namedByFlags(reading.faults, flags.given) } }
}

async function withTlsChecked(reading: ConfigReading): Promise<ConfigReading> {
  if (!reading.ok || reading.config.tls === undefined) return reading
  const { tls, httpEngine } = reading.config
  const loading = await loadEngine(httpEngine)
  const given = loading.ok ? tlsRefusal(loading.loaded, tls) : undefined
  if (given === undefined) return reading
  const { name } = settings.tlsKeyFile
  const allowed = 'a key that this HTTP library supports, such as one on P-256, or RSA of 2048 bits'
  return { ok: false, faults: [{ name, given, allowed }], warnings: reading.warnings }
}

/**
 * The warnings about the settings, including those about an expired certificate and an invalid license.
 * Sentences without a full stop.
 */
export async function warningsOf(reading: ConfigReading): Promise<string[]> {
  if (!reading.ok) return reading.warnings
  return [
    ...reading.warnings,
    ...certificateWarnings(reading.config),
    ...(await licenseWarnings(reading.config)),
  ]
}

function certificateWarnings({ tls }: Config): string[] {
  return tls === undefined ? [] : validityWarnings(settings.tlsCertFile.name, tls.certFile, systemClock())
}

async function licenseWarnings({ auth, dataDir }: Config): Promise<string[]> {
  // A missing license is among the warnings already.
  if (!auth.enabled || auth.licenseKey === undefined) return []
  try {
    const publicKey = auth.licensePublicKey ?? authorityPublicKey(dataDir)
    const { licenseKey } = auth
    const checked = await licenseStatus({ licenseKey, publicKey, nowMs: systemClock() })
    return checked.state === 'valid' ? [] : [checked.detail]
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return [`SERVICE_LICENSE_KEY cannot be checked: ${error.message}`]
  }
}

/*
 * Every setting is a flag of the command line: SERVICE_DATA_DIR is --data-dir. Secrets have no flags, because
 * every user of the machine can see the arguments of a process.
 */

/** Flags by the names of their settings, or what is wrong with them. */
type FlagReading = { ok: true; given: Environment } | { ok: false; fault: string }

const list: readonly Setting<unknown>[] = Object.values(settings)
const byFlag = new Map(list.map((setting) => [flagOf(setting.name), setting]))

/** The flag of a setting: `--data-dir` for `SERVICE_DATA_DIR`. */
export function flagOf(name: string): string {
  return `--${name
    .replace(/^SERVICE_/, '')
    .toLowerCase()
    .replaceAll('_', '-')}`
}

/**
 * Reads arguments of which all are flags of settings. A boolean flag without a value means true.
 * @returns the values by the names of their settings
 */
export function readFlags(args: readonly string[]): FlagReading {
  const unknown = args.map((arg) => faultOf(arg)).find((fault) => fault !== undefined)
  if (unknown !== undefined) return { ok: false, fault: unknown }
  const options: NonNullable<ParseArgsConfig['options']> = {}
  for (const flag of byFlag.keys()) options[flag.slice(2)] = { type: 'string' }
  try {
    const { values } = parseOnce({ args: withBooleanValues(args), options })
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

/** Replaces the names of settings that came from flags by the flags, in faults. */
export function namedByFlags(faults: readonly SettingFault[], given: Environment): SettingFault[] {
  return faults.map((fault) =>
    given[fault.name] === undefined ? fault : { ...fault, name: flagOf(fault.name) },
  )
}

/** The flags, one per line, for the usage of a command. */
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
    return `Unknown option ${flag}${nearest === undefined ? '' : ` (did you mean ${nearest}?)`}`
  }
  if (setting.secret !== true) return undefined
  return `${flag} is not a flag, because every user of the machine could see the secret: set ${setting.name} instead`
}

/** The arguments, with `=true` added to boolean flags without a value. */
function withBooleanValues(args: readonly string[]): string[] {
  return args.map((arg, index) => {
    const isBoolean = typeof byFlag.get(arg)?.default === 'boolean'
    return isBoolean && (args[index + 1] ?? '--').startsWith('--') ? `${arg}=true` : arg
  })
}
