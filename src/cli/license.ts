import { systemClock } from '../base/clock.js'
import { pooledRandom } from '../base/random.js'
import { issueLicense } from '../auth/license.js'
import { isFileSystemError } from '../base/durable-file.js'
import { openAuthority } from '../data/license-authority.js'
import { keyPairFromSeed } from '../strand/keys.js'
import { command, fail, exitCodes } from './command.js'
import { printable } from './printable.js'
import { configOf } from './read-settings.js'

const USAGE = `Usage: strandfast license issue --licensee NAME [--days 365] [--data-dir DIR]
Prints a license for SERVICE_LICENSE_KEY, signed by the authority of the data directory; the authority is created if it does not
exist. Other servers check the license with SERVICE_LICENSE_PUBLIC_KEY. NAME has 1 to 200 characters, --days is 1 to 36500.
`

const DAYS_DEFAULT = '365'
const DAYS_MAX = 36_500
const LICENSEE_CHARS_MAX = 200
const FEATURES = ['auth']

/**
 * Issues a license of the auth add-on (docs/SIGN-IN.md). Standard output gets the license alone.
 * @returns the exit code: 0, or 78 for wrong usage, wrong settings or a data directory that cannot be used
 */
export const licenseCommand = command({
  usage: USAGE,
  action: 'issue',
  options: {
    licensee: { type: 'string' },
    days: { type: 'string', default: DAYS_DEFAULT },
    'data-dir': { type: 'string' },
  },
  read({ licensee, days, 'data-dir': dataDir }) {
    const name = licensee?.trim() ?? ''
    if (name === '' || name.length > LICENSEE_CHARS_MAX || printable(name) !== name)
      return 'Expected --licensee to be a name of 1 to 200 printable characters'
    if (!/^[1-9]\d{0,4}$/.test(days) || Number(days) > DAYS_MAX)
      return `Expected --days from 1 to ${DAYS_MAX}`
    return { grant: { licensee: name, days: Number(days), features: FEATURES }, dataDir }
  },
  async run({ grant, dataDir: given }) {
    const config = configOf(given)
    if (typeof config === 'number') return config
    const { dataDir, auth } = config
    try {
      const authority = openAuthority(dataDir, pooledRandom())
      if (!authority.ok) return fail(authority.detail, exitCodes.configuration)
      process.stdout.write(`${await issueLicense(authority.seed, grant, systemClock())}\n`)
      const { publicKey } = keyPairFromSeed(authority.seed)
      process.stderr.write(`public key of the authority: ${publicKey}\n`)
      if (auth.licensePublicKey !== undefined && auth.licensePublicKey !== publicKey) {
        process.stderr.write(
          'warning: SERVICE_LICENSE_PUBLIC_KEY is the key of another authority: a server with these settings rejects this license\n',
        )
      }
      return exitCodes.fine
    } catch (error) {
      if (!isFileSystemError(error)) throw error
      return fail(`The data directory ${dataDir} cannot be used: ${error.message}`, exitCodes.configuration)
    }
  },
})
