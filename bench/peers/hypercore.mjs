import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { runScript } from '../child.mjs'
import { packageVersion } from './programs.mjs'

const script = new URL('hypercore-process.mjs', import.meta.url)
const BULK_BLOCKS = 1_000

/**
 * Hypercore, a signed append-only log as a library: the closest relative.
 * @type {import('./peer.mjs').Peer}
 */
export const hypercore = {
  name: 'hypercore',
  kinds: ['writes', 'bulk'],
  missing: () => (packageVersion('hypercore') === undefined ? 'run npm ci in bench/peers' : undefined),
  async start({ directory }, kind) {
    const own = join(directory, `hypercore-${kind}`)
    mkdirSync(own)
    const contender = (name, blocks) => ({
      name,
      role: 'peer',
      note: 'in the process that writes; signs the root of each append over a Merkle tree; answers without fsync',
      measure: (seconds) => runScript(script, { directory: join(own, `${blocks}`), blocks, seconds }),
    })
    // Hypercore has one writer: more clients would only wait for each other.
    const singles = ({ connections }) =>
      connections === 1 ? [contender('hypercore, a block an append', 1)] : []
    const bulk = () => [contender('hypercore, 1,000 blocks an append', BULK_BLOCKS)]
    const contenders = kind === 'writes' ? singles : bulk
    return { version: packageVersion('hypercore'), contenders, stop: async () => {} }
  },
}
