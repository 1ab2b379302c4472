import { createHash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { shardsMax } from '../settings/threads.js'
import { adviceForFormat1 } from '../base/version.js'
import { readIfExists, writeDurably } from '../base/durable-file.js'

export interface Format {
  shards: number
  createdAtMs: number
  masterSeedFingerprint: string
  /** How often the strands were resharded. */
  layout: number
  /** True from the durable switch to a new number of shards until its folders are in place. */
  switching: boolean
  /** New after each restore; an input of token keys and link lookups (docs/adr/0030-restored-tokens.md). */
  tokenEra: number
  /** For a node: the cluster of which the directory is a copy, 32 hex digits (docs/CLUSTER.md). */
  cluster?: string
}

/** The format version of directories that this program creates. */
export const formatVersion = 2

/** The format of directories of cluster nodes, whose logs are in the database. */
const formatOfNode = 3

const known: ReadonlySet<unknown> = new Set([formatVersion, formatOfNode])

/** The file that identifies a data directory. */
export const formatFile = 'format.json'

/**
 * Reads format.json in any state of the directory.
 * @param name its name, which differs during a restore
 * @returns undefined without the file; a text for an invalid file
 */
export function parseFormatOf(path: string, name: string = formatFile): Format | string | undefined {
  const text = readIfExists(join(path, name))
  return text === undefined ? undefined : parseFormat(join(path, name), text)
}

/**
 * Reads format.json of a directory whose shards are in place.
 * @returns undefined without the file; a text for an invalid file or an interrupted reshard
 */
export function readFormat(path: string, name: string = formatFile): Format | string | undefined {
  const format = parseFormatOf(path, name)
  if (typeof format !== 'object' || !format.switching) return format
  return (
    `A reshard of the data directory ${path} was interrupted: start the server, or run strandfast reshard again, ` +
    'to complete it'
  )
}

/** Writes format.json atomically; it is on disk when this returns. */
export function writeFormat(path: string, format: Format, name: string = formatFile): void {
  const members = {
    format: format.cluster === undefined ? formatVersion : formatOfNode,
    shards: format.shards,
    created_at_ms: format.createdAtMs,
    master_seed_fingerprint: format.masterSeedFingerprint,
    ...(format.layout > 0 && { layout: format.layout }),
    ...(format.switching && { switching: true }),
    ...(format.tokenEra > 0 && { token_era: format.tokenEra }),
    ...(format.cluster !== undefined && { cluster: format.cluster }),
  }
  writeDurably(join(path, name), `${JSON.stringify(members, undefined, 2)}\n`)
}

/**
 * Identifies a data directory among those that deliver to one database, even with the same master seed: 32
 * hex digits, not secret. A resharded directory counts as a new one, because a position in its old logs could
 * seem valid in the new ones (docs/adr/0021-resharding.md).
 */
export function storeName({ masterSeedFingerprint, createdAtMs, layout }: Format): string {
  const moved = layout > 0 ? ` ${layout}` : ''
  return createHash('sha256')
    .update(`${masterSeedFingerprint} ${createdAtMs}${moved}`)
    .digest('hex')
    .slice(0, 32)
}

function parseFormat(file: string, text: string): Format | string {
  const damaged = `The file ${file} is damaged: restore it from a backup`
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return damaged
  }
  if (typeof json !== 'object' || json === null || !('format' in json)) return damaged
  if (!known.has(json.format)) {
    const advice = json.format === 1 ? adviceForFormat1 : 'use the program version that created it'
    return (
      `The data directory ${dirname(file)} has format ${JSON.stringify(json.format)} and this program reads ` +
      `format ${formatVersion}: ${advice}`
    )
  }
  if (!('shards' in json && 'created_at_ms' in json && 'master_seed_fingerprint' in json)) return damaged
  const { shards, created_at_ms: createdAtMs, master_seed_fingerprint: masterSeedFingerprint } = json
  if (typeof shards !== 'number' || !Number.isInteger(shards) || shards < 1 || shards > shardsMax)
    return damaged
  if (typeof createdAtMs !== 'number' || typeof masterSeedFingerprint !== 'string') return damaged
  const layout = 'layout' in json ? json.layout : 0
  const switching = 'switching' in json ? json.switching : false
  if (typeof layout !== 'number' || !Number.isInteger(layout) || typeof switching !== 'boolean')
    return damaged
  const tokenEra = 'token_era' in json ? json.token_era : 0
  if (typeof tokenEra !== 'number' || !Number.isSafeInteger(tokenEra) || tokenEra < 0) return damaged
  const found = { shards, createdAtMs, masterSeedFingerprint, layout, switching, tokenEra }
  if (json.format !== formatOfNode) return found
  const cluster = 'cluster' in json ? json.cluster : undefined
  return typeof cluster === 'string' ? { ...found, cluster } : damaged
}
