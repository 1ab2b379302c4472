import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../base/assert.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfExists,
  unfinishedSuffix,
  writeDurably,
} from '../base/durable-file.js'
import { type Format, parseFormatOf } from './format.js'
import { fingerprintOf } from './derived-keys.js'

/** The cluster to which the data directory of a node belongs. */
export interface ClusterOrigin {
  /** 32 hex digits. */
  id: string
  shards: number
  layout: number
  seedFingerprint: string
  createdAtMs: number
  tokenEra: number
  revision: number
}

/** The file in a node's directory with the last revision of the cluster's row that a start has seen. */
const revisionFile = 'cluster.revision'

interface OpenSettings {
  dataDir: string
  shards?: number
  masterSeed?: Buffer
}

/** Why a data directory does not match the configured cluster, or none; undefined if it matches. */
export function originFault(
  { dataDir, shards, masterSeed }: OpenSettings,
  format: Format | undefined,
  origin: ClusterOrigin | undefined,
): string | undefined {
  if (origin === undefined) {
    if (format?.cluster === undefined) return undefined
    return (
      `The data directory ${dataDir} belongs to a node of the cluster ${format.cluster}: set SERVICE_CLUSTER_URL, or copy ` +
      'the cluster to a standalone data directory with strandfast cluster pull'
    )
  }
  if (masterSeed === undefined || fingerprintOf(masterSeed) !== origin.seedFingerprint)
    return 'The given master seed is not that of the cluster: set the same one on all nodes'
  if (shards !== undefined && shards !== origin.shards)
    return `The cluster has ${origin.shards} shards and SERVICE_SHARDS is ${shards}: unset it`
  if (format === undefined) return undefined
  if (format.cluster === origin.id) return rowFault(dataDir, format, origin)
  if (format.cluster === undefined)
    return (
      `The data directory ${dataDir} does not belong to a cluster, but the database of SERVICE_CLUSTER_URL contains the cluster ` +
      `${origin.id}: use an empty directory, which is filled from the cluster, or copy this directory to an empty database ` +
      'with strandfast cluster push'
    )
  return (
    `The data directory ${dataDir} belongs to a node of the cluster ${format.cluster}, but the database of ` +
    `SERVICE_CLUSTER_URL contains the cluster ${origin.id}: set the right directory or database`
  )
}

/** The id of the cluster of a node's directory. */
export function clusterOf({ cluster }: { cluster: string | undefined }): string {
  assert(cluster !== undefined, 'the directory of a node names its cluster')
  return cluster
}

/** The differences between the row of a cluster and the directory of its node. */
function rowFault(dataDir: string, format: Format, origin: ClusterOrigin): string | undefined {
  const compared: readonly (readonly [string, number | string, number | string])[] = [
    ['shards', format.shards, origin.shards],
    ['layout', format.layout, origin.layout],
    ['token era', format.tokenEra, origin.tokenEra],
    ['created at', format.createdAtMs, origin.createdAtMs],
    ['fingerprint of the master seed', format.masterSeedFingerprint, origin.seedFingerprint],
  ]
  const seen = seenRevision(dataDir)
  const differences = [
    ...compared.filter(([, inDirectory, inDatabase]) => inDirectory !== inDatabase),
    ...(origin.revision < seen ? [['revision', seen, origin.revision]] : []),
  ].map(
    ([name, inDirectory, inDatabase]) =>
      `${name} ${inDatabase} in the database and ${inDirectory} in the directory`,
  )
  if (differences.length === 0) return undefined
  return (
    `The row of the cluster ${origin.id} in the database of SERVICE_CLUSTER_URL differs from the data directory ${dataDir}: ` +
    `${differences.join('; ')}. One of them was changed, or restored from an earlier state: find out which`
  )
}

/** The last revision of the cluster's row that a start on this directory has seen; 0 if none has. */
export function seenRevision(dataDir: string): number {
  return Number(/^\d{1,15}$/.exec(readIfExists(join(dataDir, revisionFile))?.trim() ?? '')?.[0] ?? 0)
}

/** Records the revision; it is on disk when this returns. */
export function noteRevision(dataDir: string, { revision }: ClusterOrigin): void {
  if (seenRevision(dataDir) !== revision) writeDurably(join(dataDir, revisionFile), `${revision}\n`)
}

/** Whether a data directory belongs to a node of a cluster, as far as it can be read. */
export function isDirectoryOf(dataDir: string, id: string): boolean {
  try {
    const format = parseFormatOf(dataDir)
    return typeof format === 'object' && format.cluster === id
  } catch (error) {
    if (isFileSystemError(error)) return false
    throw error
  }
}

/** The format.json of a new node's directory. */
export function formatOfNode(origin: ClusterOrigin): Format {
  const {
    id: cluster,
    seedFingerprint: masterSeedFingerprint,
    createdAtMs,
    shards,
    layout,
    tokenEra,
  } = origin
  return { cluster, masterSeedFingerprint, createdAtMs, shards, layout, tokenEra, switching: false }
}

/**
 * Lets the next start create missing stores, which a node rebuilds from the log.
 * @param stores their folders
 */
export function allowMissing(stores: readonly string[]): void {
  for (const store of stores) {
    const exists = existsSync(join(store, 'data.mdb'))
    if (!exists) makeDirectory(store + unfinishedSuffix)
  }
}
