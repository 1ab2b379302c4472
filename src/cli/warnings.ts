import { licenseStanding } from '../auth/license-standing.js'
import { systemClock } from '../base/clock.js'
import { isFileSystemError } from '../base/durable-file.js'
import { authorityPublicKey } from '../data/license-authority.js'
import type { ConfigReading } from '../settings/config.js'

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
