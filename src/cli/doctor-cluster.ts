import type { Config } from '../settings/config.js'
import { originFault } from '../data/cluster-origin.js'
import { readFormat } from '../data/format.js'
import { openCluster } from './cluster-start.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Looks at the database of the cluster, and whether the data directory is that of one of its nodes. */
export async function examineCluster(config: Config): Promise<Finding[]> {
  const found = await openCluster(config)
  if (!found.ok) return [fail('cluster', found.detail)]
  const { origin, warnings } = found
  const format = readFormat(config.dataDir)
  const fault = typeof format === 'string' ? undefined : originFault(config, format, origin)
  const findings = warnings.map((warning) => warn('cluster', warning))
  if (fault !== undefined) return [...findings, fail('cluster', fault)]
  if (origin === undefined) return []
  return [...findings, ok('cluster', `${origin.id} of ${origin.shards} shards, which its database has whole`)]
}
