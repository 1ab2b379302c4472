import { type Config, type ConfigReading, describeFaults, readProcessConfig } from '../settings/config.js'
import { namedByFlags, readFlags } from '../settings/flags.js'
import { licenseStanding } from '../auth/license.js'
import { systemClock } from '../base/clock.js'
import { isFileSystemError } from '../base/durable-file.js'
import { authorityPublicKey } from '../data/license-authority.js'
import { exitCodes, isHelp } from './command.js'

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
