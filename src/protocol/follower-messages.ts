import {
  isBytes,
  isFlag,
  isNumber,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  type Check,
} from '../base/shape.js'
import { isShardLine, type ShardLine } from './cluster-log-messages.js'

/* What the main thread of a node and the thread that follows the logs of shards say to each other. */

/** What that thread is started with. */
export interface FollowerSettings {
  masterSeed: Uint8Array
  stores: { path: string; line: ShardLine }[]
}

export const isFollowerSettings: Check<FollowerSettings> = members<FollowerSettings>({
  masterSeed: isBytes,
  stores: listOf(members<FollowerSettings['stores'][number]>({ path: isText, line: isShardLine })),
})

/** What it tells. */
export type FollowerTold =
  /**
   * All stores have what the logs had so many milliseconds ago, or more; who owned the first shard, and whether that is alive and has
   * not given it up.
   */
  | { kind: 'atEnd'; owner: string; ownerIsAlive: boolean; ageMs: number }
  /** A store was made from its log, and the one that was there moved to a place. */
  | { kind: 'built'; shard: number; place: string | undefined }
  /** A log could not be read, or a store not be written; it is tried again. */
  | { kind: 'failed'; shard: number; reason: string }

type Told<Kind extends FollowerTold['kind']> = Extract<FollowerTold, { kind: Kind }>

const isAtEnd = members<Told<'atEnd'>>({
  kind: oneOf('atEnd'),
  owner: isText,
  ownerIsAlive: isFlag,
  ageMs: isNumber,
})
const isBuilt = members<Told<'built'>>({ kind: oneOf('built'), shard: isNumber, place: optional(isText) })
const isFailed = members<Told<'failed'>>({ kind: oneOf('failed'), shard: isNumber, reason: isText })

export const isFollowerTold = (value: unknown): value is FollowerTold =>
  isAtEnd(value) || isBuilt(value) || isFailed(value)

/** Has it close the stores and end. */
export const stopFollowing = 'stop'
