import { hash } from 'node:crypto'
import { asBuffer } from '../../base/bytes.js'
import { verifyBytes } from '../../strand/keys.js'
import type { SyncJobs } from '../job.js'

// Inner nodes share this buffer, which is safe because hashing is synchronous.
const node = Buffer.alloc(65)
node[0] = 1

/** Computes the jobs of checks synchronously, with node:crypto and libsodium. */
export const jobs: SyncJobs = {
  hash: (bytes) => hash('sha256', bytes, 'hex'),
  node(left, right) {
    node.write(left, 1, 'hex')
    node.write(right, 33, 'hex')
    return hash('sha256', node, 'hex')
  },
  verify: ({ publicKey, message, signature }) =>
    verifyBytes(publicKey, asBuffer(message), Buffer.from(signature, 'hex')),
}
