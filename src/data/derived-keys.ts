import { assert } from '../base/assert.js'
import { deriveSeed } from '../strand/keys.js'
import { createHmac } from 'node:crypto'

const ROW_KEY_INFO = 'strandfast/cluster-row/v1'

/** The 32-byte key of the MACs of a cluster's table rows. */
export function rowKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, ROW_KEY_INFO)
}

/** The same for the data directory of a node, with the id of the cluster. */
export function rowSecretOf({
  masterSeed,
  cluster,
}: {
  masterSeed: Uint8Array
  cluster: string | undefined
}): {
  key: Buffer
  cluster: string
} {
  assert(cluster !== undefined, 'the data directory of a node names its cluster')
  return { key: rowKeyOf(masterSeed), cluster }
}

const LINK_KEY_INFO = 'strandfast/cluster-link/v1'

/** The 32-byte key by which the nodes of a cluster authenticate each other. */
export function linkKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, LINK_KEY_INFO)
}

const FINGERPRINT_INFO = 'strandfast/master-seed-fingerprint/v1'
const MARK_INFO = 'strandfast/root-key-mark/v1'
const MARK_DIGITS = 8

/** The fingerprint of a master seed, for format.json and the cluster's table. It does not reveal the seed. */
export function fingerprintOf(seed: Uint8Array): string {
  return deriveSeed(seed, FINGERPRINT_INFO).toString('hex')
}

/**
 * The mark of a root key in the cluster's table. Without the master seed, no key can be tested against it.
 */
export function markOf(rootKeyDigest: Uint8Array, masterSeed: Uint8Array): string {
  const mark = createHmac('sha256', deriveSeed(masterSeed, MARK_INFO)).update(rootKeyDigest)
  return mark.digest('hex').slice(0, MARK_DIGITS)
}
