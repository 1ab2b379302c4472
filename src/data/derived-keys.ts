import { assert } from '../base/assert.js'
import { deriveSeed } from '../strand/keys.js'
import { createHmac } from 'node:crypto'

const ROW_KEY_INFO = 'strandfast/cluster-row/v1'

/** The key, 32 bytes, of the MACs that rows of a cluster's tables carry. */
export function rowKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, ROW_KEY_INFO)
}

/** The same with the id of the cluster, of the data directory of a node. */
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

/** The key, 32 bytes, by which the nodes of a cluster know one another. */
export function linkKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, LINK_KEY_INFO)
}

const FINGERPRINT_INFO = 'strandfast/master-seed-fingerprint/v1'
const MARK_INFO = 'strandfast/root-key-mark/v1'
const MARK_DIGITS = 8

/** What format.json, and the table of a cluster, have of a master seed: enough to recognise it, but not to find it. */
export function fingerprintOf(seed: Uint8Array): string {
  return deriveSeed(seed, FINGERPRINT_INFO).toString('hex')
}

/** By which root keys are told apart in the database of a cluster; nobody without the master seed can try keys against it. */
export function markOf(rootKeyDigest: Uint8Array, masterSeed: Uint8Array): string {
  const mark = createHmac('sha256', deriveSeed(masterSeed, MARK_INFO)).update(rootKeyDigest)
  return mark.digest('hex').slice(0, MARK_DIGITS)
}
