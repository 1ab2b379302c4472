import { pooledRandom } from '../base/random.js'
import { keyPairFromSeed, seedBytes } from '../strand/keys.js'
import { command, exitCodes } from './command.js'

/**
 * Prints a new seed, or the one given, and its public key as one line of JSON.
 * @returns the exit code: 0, or 78 for wrong usage
 */
export const keygenCommand = command({
  usage:
    'Usage: strandfast keygen [--seed HEX]\nPrints a seed and its public key as one line of JSON. HEX is a seed of 64 hex digits; without --seed, a new one is made.\n',
  options: { seed: { type: 'string' } },
  read: ({ seed }) =>
    seed === undefined || /^[0-9a-f]{64}$/i.test(seed)
      ? { given: seed }
      : 'Expected --seed to be 64 hex digits',
  run({ given }) {
    const seed = given === undefined ? pooledRandom()(seedBytes) : Buffer.from(given, 'hex')
    const { publicKey } = keyPairFromSeed(seed)
    const line = { seed_hex: Buffer.from(seed).toString('hex'), public_key: publicKey }
    process.stdout.write(`${JSON.stringify(line)}\n`)
    return exitCodes.fine
  },
})
