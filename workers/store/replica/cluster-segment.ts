import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { RandomBytes } from '../../../src/base/random.js'
import { ROW_CHECKSUM_BYTES } from '../../../src/store-files/row-checksum.js'
import type { SegmentPart, SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import { deriveSeed } from '../../../src/strand/keys.js'
import { seal, unseal } from '../../../src/strand/seal.js'
import { importedBlocksFrom, runKey } from '../tables/tables.js'
import type { RecordCheck } from '../log/record-check.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { bytesOf, type CommitmentOf, decodeBlocks, encodeBlocks } from '../log/segment-blocks.js'
import { blockTableIds, tableIds } from '../../../src/store-files/store-tables.js'

/*
 * The format of a segment in the database of a cluster: a header of lines, whose HMAC under a key from the
 * master seed is the segment's hash; the records in plaintext, so that their bodies can be erased; and all
 * other rows, sealed. The header covers the bytes of the records that an erasure does not change, and the
 * commitments of their bodies (segment-blocks.ts), so it stays valid after an erasure.
 *
 *   strandfast-segment/v2
 *   cluster 47…                 its id, 32 hex digits
 *   shard 3
 *   segment 17
 *   kind group
 *   node a 3                    the writer and its incarnation
 *   groups 40 2                 number of the last group in it, and the number of groups
 *   next 57 1099511627776       numbers of the next blocks, of the log and of imported records
 *   prev 5b…                    hash of the previous segment, 64 hex digits
 *   state 90…                   SHA-256 of the sealed rows
 *   blocks c1…                  the digest of the blocks
 */

/**
 * `base` begins a log. `history` has blocks of a pushed directory, whose other rows are in a checkpoint. With
 * `open` the writer becomes the owner of the shard; with `close` it releases the shard, and any node may open
 * the log.
 */
export type ClusterSegmentKind = (typeof kinds)[number]
const kinds = ['base', 'history', 'open', 'group', 'close'] as const

/** The numbers of the next blocks to write. */
export interface NextBlocks {
  blocks: number
  imported: number
}

/** For an empty log. */
export const noBlocks: NextBlocks = { blocks: 0, imported: importedBlocksFrom }

/**
 * The node that wrote a segment, and its incarnation. The name is empty in segments from before the first
 * node.
 */
export interface Writer {
  node: string
  incarnation: number
}

/** The writer of segments from before the first node. */
export const noWriter: Writer = { node: '', incarnation: 0 }

export interface ClusterHeader {
  shard: number
  segment: number
  kind: ClusterSegmentKind
  writer: Writer
  /** Number of the last group in it. */
  lastGroup: number
  groups: number
  /** The numbers of the next blocks after it. */
  next: NextBlocks
  /** Hash of the previous segment; zeros for the first. */
  prev: Buffer
}

/** An encoded segment. */
export interface ClusterSegment {
  header: string
  hash: Buffer
  parts: SegmentPart[]
}

/** What a node needs to seal segments of a cluster. */
export interface ClusterSecret {
  /** Id of the cluster, 32 hex digits. */
  cluster: string
  masterSeed: Uint8Array
  random: RandomBytes
}

/** What a node needs to read segments. */
export type ClusterKeys = Pick<ClusterSecret, 'cluster' | 'masterSeed'>

const TITLE = 'strandfast-segment/v2'
const MAC_KEY = 'strandfast/cluster-segment/v1'
const PURPOSE = 'strandfast/cluster-state/v1'

/**
 * Encodes a segment with changes of rows.
 * @param secret with `commitmentOf` for erased records in the blocks; if absent, their erasures must be among
 * the changes
 */
export function encodeClusterSegment(
  about: ClusterHeader,
  changes: readonly RowChange[],
  secret: ClusterSecret & { commitmentOf?: CommitmentOf },
): ClusterSegment {
  const { cluster, masterSeed, random, commitmentOf = commitmentsIn(changes) } = secret
  const blocks = encodeBlocks(
    changes.filter(({ table }) => blockTableIds.has(table)),
    commitmentOf,
  )
  const rows = bytesOf(changes.filter(({ table }) => !blockTableIds.has(table)))
  const boundTo = bindingOf(cluster, about)
  const state =
    rows.length === 0 ? null : seal(masterSeed, { purpose: PURPOSE, boundTo, secret: rows }, random)
  const header = [
    TITLE,
    `cluster ${cluster}`,
    `shard ${about.shard}`,
    `segment ${about.segment}`,
    `kind ${about.kind}`,
    `node ${about.writer.node} ${about.writer.incarnation}`,
    `groups ${about.lastGroup} ${about.groups}`,
    `next ${about.next.blocks} ${about.next.imported}`,
    `prev ${about.prev.toString('hex')}`,
    `state ${hash('sha256', state ?? Buffer.alloc(0))}`,
    `blocks ${blocks.digest}`,
    '',
  ].join('\n')
  return { header, hash: macOf(masterSeed, header), parts: partsOf(blocks.bytes, state) }
}

/** Segment 0 of a shard's log in a cluster, as it is stored. */
export function firstSegment(shard: number, secret: ClusterSecret) {
  const prev = Buffer.alloc(32)
  const numbered = { shard, segment: 0, lastGroup: 0, groups: 0, next: noBlocks, prev }
  const { header, hash, parts } = encodeClusterSegment(
    { ...numbered, kind: 'base', writer: noWriter },
    [],
    secret,
  )
  const stored = parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
  return { shard, number: 0, hash, header, parts: stored }
}

export interface DecodedSegment {
  about: ClusterHeader
  hash: Buffer
  changes: RowChange[]
}

/** How to decode a segment. */
export interface SegmentReading extends ClusterKeys {
  /** `blocks` if a checkpoint has the other rows. */
  what?: 'whole' | 'blocks'
  check?: RecordCheck | undefined
}

/**
 * Decodes a segment from all its rows, in order.
 * @throws Error if no node of this cluster with this master seed wrote it
 */
export function decodeClusterSegment(
  rows: readonly SegmentRow[],
  { what = 'whole', check, ...keys }: SegmentReading,
): DecodedSegment {
  const [first] = rows
  assert(first !== undefined, 'a segment has a row')
  const { about, stateDigest, blocksDigest } = openHeader(first, keys)
  // Without its checkpoint, its agents would start again at genesis.
  if (what === 'whole' && about.kind === 'history')
    throw segmentError(first, 'has its other rows in a checkpoint, which is missing')
  const boundTo = bindingOf(keys.cluster, about)
  const state =
    what === 'whole' ? unsealState(rows, { stateDigest, boundTo, masterSeed: keys.masterSeed }) : []
  const mismatch = (cause?: unknown) => {
    const reason = cause instanceof Error ? `: ${cause.message}` : ''
    return segmentError(first, `has rows that do not match its header${reason}`)
  }
  let found: ReturnType<typeof decodeBlocks>
  try {
    check?.startSegment(state)
    found = decodeBlocks(Buffer.concat(rows.map(({ blocks }) => blocks)), (record, commitment) =>
      check?.checkRecord(record, commitment),
    )
  } catch (error) {
    throw mismatch(error)
  }
  if (found.digest !== blocksDigest) throw mismatch()
  return { about, hash: Buffer.from(first.hash), changes: [...found.blocks, ...state] }
}

/** The first row of a segment. */
export type HeaderRow = Pick<SegmentRow, 'segment' | 'hash' | 'header'>

/** Decodes the header of a segment. @throws Error as `decodeClusterSegment` does */
export function decodeHeader(row: HeaderRow, keys: ClusterKeys): ClusterHeader {
  return openHeader(row, keys).about
}

/**
 * Decrypts the sealed rows of a segment.
 * @param sealing their digest, the owner of the seal and the master seed
 */
function unsealState(
  rows: readonly SegmentRow[],
  { stateDigest, boundTo, masterSeed }: { stateDigest: string; boundTo: Buffer; masterSeed: Uint8Array },
): RowChange[] {
  const sealed = Buffer.concat(rows.map(({ state }) => state ?? Buffer.alloc(0)))
  const isRemoved = sealed.length === 0
  if (hash('sha256', sealed) !== stateDigest)
    throw segmentError(
      rows[0],
      isRemoved
        ? 'has its rows in a checkpoint, which was written while the log was read'
        : 'has rows that do not match its header',
    )
  if (isRemoved) return []
  return [...decodeChanges(unseal(masterSeed, { purpose: PURPOSE, boundTo }, sealed))]
}

/** Commitments of records that were written and erased in one segment, or were imported erased. */
function commitmentsIn(changes: readonly RowChange[]): CommitmentOf {
  const rows = changes.filter(({ table }) => table === tableIds.erasures)
  const values = new Map(rows.map(({ key, value }) => [key.toString('latin1'), value]))
  return ({ agentNo, seq }) =>
    values.get(runKey(agentNo, seq).toString('latin1'))?.subarray(0, -ROW_CHECKSUM_BYTES)
}

/** The error for an invalid segment. @param fault a predicate, such as "is of another cluster" */
function segmentError(row: Pick<SegmentRow, 'segment'> | undefined, fault: string): Error {
  return new Error(`Segment ${row?.segment} of the cluster’s log ${fault}`)
}

function openHeader(row: HeaderRow, { cluster, masterSeed }: ClusterKeys) {
  if (!equal(macOf(masterSeed, row.header), row.hash))
    throw segmentError(row, 'was not written by a node with this master seed')
  const lines = row.header.split('\n')
  const fields = new Map(
    lines.slice(1).map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
  )
  const field = (name: string): string => {
    const value = fields.get(name)
    if (value === undefined || lines[0] !== TITLE)
      throw segmentError(row, 'has a header of an unknown format')
    return value
  }
  const found = field('cluster')
  if (found !== cluster) throw segmentError(row, `is of another cluster, ${found}`)
  const kind = kinds.find((known) => known === field('kind'))
  if (kind === undefined) throw segmentError(row, 'has an unknown kind')
  const [node = '', incarnation = ''] = field('node').split(' ')
  const [lastGroup = 0, groups = 0] = field('groups').split(' ').map(Number)
  const [blocks = 0, imported = 0] = field('next').split(' ').map(Number)
  const about: ClusterHeader = {
    shard: Number(field('shard')),
    segment: Number(field('segment')),
    kind,
    writer: { node, incarnation: Number(incarnation) },
    lastGroup,
    groups,
    next: { blocks, imported },
    prev: Buffer.from(field('prev'), 'hex'),
  }
  if (about.segment !== row.segment) throw segmentError(row, `has the content of segment ${about.segment}`)
  return { about, stateDigest: field('state'), blocksDigest: field('blocks') }
}

/** Splits a segment into rows of limited size; at least one. */
function partsOf(blocks: Buffer, state: Buffer | null): SegmentPart[] {
  const bytes = limits.clusterPartBytes
  const count = Math.max(1, Math.ceil(blocks.length / bytes), Math.ceil((state?.length ?? 0) / bytes))
  return Array.from({ length: count }, (_none, part) => {
    const [from, to] = [part * bytes, (part + 1) * bytes]
    return { blocks: blocks.subarray(from, to), state: state?.subarray(from, to) ?? null }
  })
}

function bindingOf(cluster: string, { shard, segment }: Pick<ClusterHeader, 'shard' | 'segment'>): Buffer {
  return Buffer.from(`${cluster} ${shard} ${segment}`)
}

function macOf(masterSeed: Uint8Array, header: string): Buffer {
  return createHmac('sha256', deriveSeed(masterSeed, MAC_KEY)).update(header).digest()
}

function equal(one: Buffer, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
