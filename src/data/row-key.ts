import { assert } from '../base/assert.js'
import { deriveSeed } from '../strand/keys.js'
import type { DataDirectory } from './directory.js'

const ROW_KEY_INFO = 'strandfast/cluster-row/v1'

/** The key, 32 bytes, of the MACs that rows of a cluster's tables carry. */
export function rowKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, ROW_KEY_INFO)
}

/** The same with the id of the cluster, of the data directory of a node. */
export function rowSecretOf({ masterSeed, cluster }: Pick<DataDirectory, 'masterSeed' | 'cluster'>): {
  key: Buffer
  cluster: string
} {
  assert(cluster !== undefined, 'the data directory of a node names its cluster')
  return { key: rowKeyOf(masterSeed), cluster }
}
