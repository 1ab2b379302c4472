import type { Config } from '../settings/config.js'
import type { ClusterNode, NodeParts } from './cluster-node.js'

/** This process as a node of a cluster; undefined for a server of its own. */
export async function makeClusterNode(
  { cluster }: Config,
  parts: Omit<NodeParts, 'settings'>,
): Promise<ClusterNode | undefined> {
  if (cluster === undefined) return undefined
  // Loaded where there is a cluster: the driver of its database takes a while.
  const { ClusterNode } = await import('./cluster-node.js')
  return new ClusterNode({ settings: cluster, ...parts })
}
