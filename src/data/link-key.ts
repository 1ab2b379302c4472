import { deriveSeed } from '../strand/keys.js'

const LINK_KEY_INFO = 'strandfast/cluster-link/v1'

/** The key, 32 bytes, by which the nodes of a cluster know one another. */
export function linkKeyOf(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, LINK_KEY_INFO)
}
