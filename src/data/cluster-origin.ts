import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { assert } from '../base/assert.js'
import {
  isFileSystemError,
  makeDirectory,
  readIfThere,
  unfinishedSuffix,
  writeDurably,
} from '../base/durable-file.js'
import { type Format, parseFormatOf } from './format.js'
import { fingerprintOf } from './derived-keys.js'

/** The cluster that the data directory of a node is a copy of. */
export interface ClusterOrigin {
  /** 32 hex digits. */
  id: string
  shards: number
  layout: number
  seedFingerprint: string
  createdAtMs: number
  tokenEra: number
  /** How often the row of the cluster was written. */
  revision: number
}

/** The file in a node's directory that has the last revision of its cluster's row that a start has seen. */
const revisionFile = 'cluster.revision'

/** What a directory is opened with. */
interface Given {
  dataDir: string
  shards?: number
  masterSeed?: Buffer
}

/** Why a data directory and a cluster, or none, do not go together; undefined where they do. */
export function originFault(
  { dataDir, shards, masterSeed }: Given,
  format: Format | undefined,
  origin: ClusterOrigin | undefined,
): string | undefined {
  if (origin === undefined) {
    if (format?.cluster === undefined) return undefined
    return (
      `The data directory ${dataDir} is that of a node of the cluster ${format.cluster}: set SERVICE_CLUSTER_URL, or make ` +
      'a directory of its own of that cluster by strandfast cluster pull'
    )
  }
  if (masterSeed === undefined || fingerprintOf(masterSeed) !== origin.seedFingerprint)
    return 'The master seed given is not that of the cluster: all nodes have the same one'
  if (shards !== undefined && shards !== origin.shards)
    return `The cluster has ${origin.shards} shards and SERVICE_SHARDS asks for ${shards}: unset it`
  if (format === undefined) return undefined
  if (format.cluster === origin.id) return rowFault(dataDir, format, origin)
  if (format.cluster === undefined)
    return (
      `The data directory ${dataDir} belongs to no cluster, and the database of SERVICE_CLUSTER_URL holds the cluster ` +
      `${origin.id}: name an empty directory, which is filled from there, or make an empty database the cluster of this ` +
      'directory by strandfast cluster push'
    )
  return (
    `The data directory ${dataDir} is that of a node of the cluster ${format.cluster}, and the database of ` +
    `SERVICE_CLUSTER_URL holds the cluster ${origin.id}: name the right one of the two`
  )
}

/** The id of the cluster that the directory of a node belongs to. */
export function clusterOf({ cluster }: { cluster: string | undefined }): string {
  assert(cluster !== undefined, 'the directory of a node names its cluster')
  return cluster
}

/** In what the row of a cluster differs from what the directory of its node knows. */
function rowFault(dataDir: string, format: Format, origin: ClusterOrigin): string | undefined {
  const compared: readonly (readonly [string, number | string, number | string])[] = [
    ['shards', format.shards, origin.shards],
    ['layout', format.layout, origin.layout],
    ['token era', format.tokenEra, origin.tokenEra],
    ['made at', format.createdAtMs, origin.createdAtMs],
    ['fingerprint of the master seed', format.masterSeedFingerprint, origin.seedFingerprint],
  ]
  const seen = seenRevision(dataDir)
  const differences = [
    ...compared.filter(([, here, there]) => here !== there),
    ...(origin.revision < seen ? [['revision', seen, origin.revision]] : []),
  ].map(([name, here, there]) => `${name} ${there} where the directory has ${here}`)
  if (differences.length === 0) return undefined
  return (
    `The database of SERVICE_CLUSTER_URL holds another row of the cluster ${origin.id} than the data directory ${dataDir} ` +
    `knows: ${differences.join('; ')}. Either went back to an earlier state or was changed: find out which`
  )
}

/** The last revision of its cluster's row that a start of a node on a directory has seen; 0 where none has. */
export function seenRevision(dataDir: string): number {
  return Number(/^\d{1,15}$/.exec(readIfThere(join(dataDir, revisionFile))?.trim() ?? '')?.[0] ?? 0)
}

/** Notes it; it is on disk when this returns. */
export function noteRevision(dataDir: string, { revision }: ClusterOrigin): void {
  if (seenRevision(dataDir) !== revision) writeDurably(join(dataDir, revisionFile), `${revision}\n`)
}

/** Whether a data directory is that of a node of a cluster, so far as it can be read. */
export function isDirectoryOf(dataDir: string, id: string): boolean {
  try {
    const format = parseFormatOf(dataDir)
    return typeof format === 'object' && format.cluster === id
  } catch (error) {
    if (isFileSystemError(error)) return false
    throw error
  }
}

/** What format.json of a new node's directory says. */
export function formatOfNode(origin: ClusterOrigin): Format {
  const {
    id: cluster,
    seedFingerprint: masterSeedFingerprint,
    createdAtMs,
    shards,
    layout,
    tokenEra,
  } = origin
  const fixed = { switching: false, hasLog: true }
  return { cluster, masterSeedFingerprint, createdAtMs, shards, layout, tokenEra, ...fixed }
}

/** Has the next opening make stores that are missing: a node's are made from the log. @param stores their folders */
export function allowMissing(stores: readonly string[]): void {
  for (const store of stores) {
    const made = existsSync(join(store, 'data.mdb'))
    if (!made) makeDirectory(store + unfinishedSuffix)
  }
}
