import { hash } from 'node:crypto'
import { asBuffer } from '../../base/bytes.js'
import { verifyBytes } from '../../strand/keys.js'
import type { JobsNow } from '../job.js'

// One block that every inner node is put together in: hashing is synchronous, so none sees another's.
const node = Buffer.alloc(65)
node[0] = 1

/** Works out the jobs of checks by node:crypto and libsodium, at once. */
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
