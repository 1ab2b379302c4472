import { pooledRandom } from '../base/random.js'
import { keyPairFromSeed, seedBytes } from '../strand/keys.js'
import { parseOnce } from '../settings/parse-once.js'
import { showUsage } from './read-options.js'

const USAGE = 'Usage: strandfast keygen [--seed HEX], HEX being 64 hex digits\n'

/**
 * Prints a new seed, or the one given, with its public key, as one line of JSON.
 * @returns the exit code: 0, or 78 for wrong usage
 */
export function keygenCommand(args: string[]): number {
  if (args.includes('--help') || args.includes('-h')) {
    return showUsage(USAGE, { help: true, fault: '' })
  }
  const given = readSeed(args)
  if (given === undefined) {
    return showUsage(USAGE, { help: false, fault: 'Expected nothing but --seed with 64 hex digits' })
  }
  const seed = given === '' ? pooledRandom()(seedBytes) : Buffer.from(given, 'hex')
  const { publicKey } = keyPairFromSeed(seed)
  const line = { seed_hex: Buffer.from(seed).toString('hex'), public_key: publicKey }
  process.stdout.write(`${JSON.stringify(line)}\n`)
  return 0
}

/** The given seed, '' when there is none, undefined when the arguments are wrong. */
function readSeed(args: string[]): string | undefined {
  try {
    const { values } = parseOnce({ args, options: { seed: { type: 'string' } } })
    if (values.seed === undefined) return ''
    return /^[0-9a-f]{64}$/i.test(values.seed) ? values.seed : undefined
  } catch {
    return undefined
  }
}
