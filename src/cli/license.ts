import { systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { issueLicense } from '../auth/license.js'
import { describeFaults } from '../settings/config.js'
import { isFileSystemError } from '../base/durable-file.js'
import { openAuthority } from '../data/license-authority.js'
import { keyPairFromSeed } from '../strand/keys.js'
import { exitCodes } from './exit-codes.js'
import { printable } from './printable.js'
import { readOptions, showUsage } from './read-options.js'
import { settingsOf } from './read-settings.js'

const USAGE = `Usage: strandfast license issue --licensee NAME [--days 365] [--data-dir DIR]
Prints a license for SERVICE_LICENSE_KEY. It is signed by the authority of the data directory, which is made when there
is none; other servers check it by SERVICE_LICENSE_PUBLIC_KEY. NAME has at most 200 characters, --days 1 to 36500.
`

const DAYS_DEFAULT = '365'
const DAYS_MAX = 36_500
const LICENSEE_CHARS_MAX = 200
const FEATURES = ['auth']

/**
 * Issues a license of the auth add-on (docs/OPERATIONS.md, Signing people in). Only the token goes to standard output.
 * @returns the exit code: 0, or 78 for wrong usage, wrong settings or a data directory that cannot be used
 */
export async function licenseCommand(args: string[]): Promise<number> {
  const asked = readGrant(args)
  if (!asked.ok) return showUsage(USAGE, asked)
  const reading = settingsOf(asked.dataDir)
  if (!reading.ok) return refuse(describeFaults(reading.faults))
  const { dataDir, auth } = reading.config
  try {
    const authority = openAuthority(dataDir, pooledRandom())
    if (!authority.ok) return refuse(`${authority.detail}\n`)
    const token = await issueLicense(authority.seed, asked.grant, systemClock())
    process.stdout.write(`${token}\n`)
    const { publicKey } = keyPairFromSeed(authority.seed)
    process.stderr.write(`public key of the authority: ${publicKey}\n`)
    if (auth.licensePublicKey !== undefined && auth.licensePublicKey !== publicKey) {
      process.stderr.write(
        'warning: SERVICE_LICENSE_PUBLIC_KEY names another authority, which the server goes by\n',
      )
    }
    return exitCodes.fine
  } catch (error) {
    if (!isFileSystemError(error)) throw error
    return refuse(`The data directory ${dataDir} cannot be used: ${error.message}\n`)
  }
}

type Asked =
  | { ok: true; grant: { licensee: string; days: number; features: string[] }; dataDir: string | undefined }
  | { ok: false; help: boolean; fault: string }

function readGrant(args: string[]): Asked {
  const [action, ...rest] = args
  const wrong = (fault: string): Asked => ({ ok: false, help: false, fault })
  const options = readOptions(action === 'issue' ? rest : args, {
    licensee: { type: 'string' },
    days: { type: 'string', default: DAYS_DEFAULT },
    'data-dir': { type: 'string' },
  })
  if (!options.ok && options.help) return options
  if (action !== 'issue')
    return wrong(action === undefined ? 'Expected: issue' : `Expected: issue, not ${action}`)
  if (!options.ok) return options
  const { licensee, days } = options.values
  const name = licensee?.trim() ?? ''
  if (name === '' || name.length > LICENSEE_CHARS_MAX || printable(name) !== name)
    return wrong('Expected --licensee with a name')
  if (!/^[1-9]\d{0,4}$/.test(days) || Number(days) > DAYS_MAX) {
    return wrong(`Expected --days from 1 to ${DAYS_MAX}`)
  }
  const grant = { licensee: name, days: Number(days), features: FEATURES }
  return { ok: true, grant, dataDir: options.values['data-dir'] }
}

function refuse(text: string): number {
  process.stderr.write(text)
  return exitCodes.configuration
}
