import { hash } from 'node:crypto'
import { asBuffer } from '../../base/bytes.js'
import { verifyBytes } from '../../strand/keys.js'
import type { JobsNow } from '../job.js'

// Every inner node is assembled in this one block: hashing is synchronous, so none overwrites another.
const node = Buffer.alloc(65)
node[0] = 1

/** Computes the jobs of checks at once, with node:crypto and libsodium. */
export const jobs: JobsNow = {
  hash: (bytes) => hash('sha256', bytes, 'hex'),
  node(left, right) {
    node.write(left, 1, 'hex')
    node.write(right, 33, 'hex')
    return hash('sha256', node, 'hex')
  },
  verify: ({ publicKey, message, signature }) =>
    verifyBytes(publicKey, asBuffer(message), Buffer.from(signature, 'hex')),
}
