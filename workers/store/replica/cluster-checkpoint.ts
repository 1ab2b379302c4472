import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { deriveSeed } from '../../../src/strand/keys.js'
import { seal, unseal } from '../../../src/strand/seal.js'
import type { ClusterKeys, ClusterSecret } from './cluster-segment.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { bytesOf } from '../log/segment-blocks.js'
import { partsOf, replicatedRows } from '../row-mover.js'
import type { Snapshot } from '../snapshots.js'

/*
 * A checkpoint of a shard: all rows of its replicated tables except blocks, as of one segment. Parts from 1
 * on are sealed rows. Part 0 is written last, and shows that the checkpoint is complete:
 *
 *   HMAC-SHA256 of the following under a key from the master seed, 32 bytes
 *   strandfast-checkpoint/v2
 *   cluster 47…         its id, 32 hex digits
 *   shard 3
 *   segment 17
 *   hash 5b…            of that segment, 64 hex digits
 *   group 40            number of the last group in or before that segment
 *   at 1790000000000    Unix milliseconds
 *   parts 5             without part 0
 *   bytes 4816012       of these parts
 */

/** The content of part 0. */
export interface CheckpointHead {
  shard: number
  segment: number
  hash: Buffer
  group: number
  atMs: number
  parts: number
  bytes: number
}

export interface CheckpointRows extends Pick<CheckpointHead, 'segment' | 'hash'> {
  rows: Iterable<RowChange[]>
}

export type CheckpointPartId = Pick<CheckpointHead, 'shard' | 'segment'> & { part: number }

const TITLE = 'strandfast-checkpoint/v2'
const MAC_KEY = 'strandfast/cluster-checkpoint-head/v1'
/** The purpose with which rows of checkpoints are sealed. */
const checkpointPurpose = 'strandfast/cluster-checkpoint/v1'
const MAC_BYTES = 32

/** A part as it is stored; part 0 comes last. */
export interface CheckpointPart {
  segment: number
  part: number
  state: Buffer
}

/**
 * The parts of a checkpoint of a store at log position `at`.
 * @param clock called when all parts but part 0 are written
 */
export function* checkpointParts(
  snapshot: Snapshot,
  at: Pick<CheckpointHead, 'shard' | 'segment' | 'hash' | 'group'>,
  { clock, ...secret }: ClusterSecret & { clock(): number },
): Generator<CheckpointPart> {
  const { shard, segment } = at
  let [parts, bytes] = [0, 0]
  for (const changes of partsOf(replicatedRows(snapshot))) {
    if (changes.length === 0) continue
    parts += 1
    const state = encodeCheckpointPart({ shard, segment, part: parts }, changes, secret)
    bytes += state.length
    yield { segment, part: parts, state }
  }
  yield { segment, part: 0, state: encodeCheckpointHead({ ...at, atMs: clock(), parts, bytes }, secret) }
}

export function encodeCheckpointPart(
  id: CheckpointPartId,
  changes: readonly RowChange[],
  { cluster, masterSeed, random }: ClusterSecret,
): Buffer {
  const boundTo = bindingOf(cluster, id)
  return seal(masterSeed, { purpose: checkpointPurpose, boundTo, secret: bytesOf(changes) }, random)
}

/** @throws Error if no node with this master seed wrote this part */
export function decodeCheckpointPart(
  id: CheckpointPartId,
  state: Uint8Array,
  { cluster, masterSeed }: ClusterKeys,
): RowChange[] {
  const boundTo = bindingOf(cluster, id)
  return [...decodeChanges(unseal(masterSeed, { purpose: checkpointPurpose, boundTo }, state))]
}

/** Encodes part 0. */
export function encodeCheckpointHead(
  { shard, segment, hash, group, atMs, parts, bytes }: CheckpointHead,
  { cluster, masterSeed }: ClusterKeys,
): Buffer {
  const lines = [
    TITLE,
    `cluster ${cluster}`,
    `shard ${shard}`,
    `segment ${segment}`,
    `hash ${hash.toString('hex')}`,
    `group ${group}`,
    `at ${atMs}`,
    `parts ${parts}`,
    `bytes ${bytes}`,
    '',
  ]
  const text = Buffer.from(lines.join('\n'))
  return Buffer.concat([macOf(masterSeed, text), text])
}

/** @throws Error if no node of this cluster with this master seed wrote it */
export function decodeCheckpointHead(head: Uint8Array, { cluster, masterSeed }: ClusterKeys): CheckpointHead {
  const [mac, text] = [head.subarray(0, MAC_BYTES), head.subarray(MAC_BYTES)]
  if (mac.length !== MAC_BYTES || !timingSafeEqual(mac, macOf(masterSeed, text)))
    throw new Error('A checkpoint in the database was not written by a node with this master seed')
  const [first, ...lines] = Buffer.from(text).toString().split('\n')
  if (first !== TITLE) throw new Error('A checkpoint in the database has an unknown format')
  const fields = new Map(lines.map((line) => [line.split(' ')[0] ?? '', line.split(' ')[1] ?? '']))
  if (fields.get('cluster') !== cluster) throw new Error('A checkpoint in the database is of another cluster')
  const number = (name: string) => {
    const value = Number(fields.get(name) ?? Number.NaN)
    assert(Number.isSafeInteger(value), 'the numbers of a checkpoint are integers')
    return value
  }
  return {
    shard: number('shard'),
    segment: number('segment'),
    hash: Buffer.from(fields.get('hash') ?? '', 'hex'),
    group: number('group'),
    atMs: number('at'),
    parts: number('parts'),
    bytes: number('bytes'),
  }
}

function bindingOf(cluster: string, { shard, segment, part }: CheckpointPartId): Buffer {
  return Buffer.from(`${cluster} ${shard} ${segment} ${part}`)
}

function macOf(masterSeed: Uint8Array, text: Uint8Array): Buffer {
  return createHmac('sha256', deriveSeed(masterSeed, MAC_KEY)).update(text).digest()
}
