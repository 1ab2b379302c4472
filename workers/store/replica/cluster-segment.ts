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
import { bodied, tableIds } from '../log/table-ids.js'

/*
 * A segment of a shard as the database of a cluster has it: a header of lines, whose HMAC under a key from the master seed
 * is the segment's hash; records in the clear, so that their bodies can be erased; all other rows sealed. The header covers
 * every byte of the records that erasing does not change, and their bodies by their commitments (segment-blocks.ts), so it
 * stays true when one is erased.
 *
 *   strandfast-segment/v2
 *   cluster 47…                 its id, 32 hex digits
 *   shard 3
 *   segment 17
 *   kind group
 *   node a 3                    who wrote it, and as which incarnation
 *   groups 40 2                 number of the last group in it, and how many they are
 *   next 57 1099511627776       numbers of the next blocks, of the log and of imported records
 *   prev 5b…                    hash of the segment before, 64 hex digits
 *   state 90…                   SHA-256 of the sealed rows
 *   blocks c1…                  the digest of the blocks
 */

/**
 * `base` begins a log; `history` has blocks that were written before there was one, whose other rows are in a checkpoint;
 * `open` says who owns the shard from there on, and `close` that who did has given it up: anybody may open it.
 */
export type ClusterSegmentKind = (typeof kinds)[number]
const kinds = ['base', 'history', 'open', 'group', 'close'] as const

/** Numbers of blocks that nobody has written yet. */
export interface NextBlocks {
  blocks: number
  imported: number
}

/** Where there are none. */
export const noBlocks: NextBlocks = { blocks: 0, imported: importedBlocksFrom }

/** Who wrote a segment: a node, and its incarnation; an empty name where the cluster was made. */
export interface Writer {
  node: string
  incarnation: number
}

/** Of what was there before any node. */
export const noWriter: Writer = { node: '', incarnation: 0 }

/** What the header of a segment says. */
export interface ClusterHeader {
  shard: number
  segment: number
  kind: ClusterSegmentKind
  /** Who wrote it. */
  writer: Writer
  /** Number of the last group that it has. */
  lastGroup: number
  groups: number
  /** Numbers of the next blocks behind it, of the log and of imported records. */
  next: NextBlocks
  /** Hash of the segment before; zeros for the first. */
  prev: Buffer
}

/** A segment that is written or read. */
export interface ClusterSegment {
  header: string
  hash: Buffer
  parts: SegmentPart[]
}

/** What a node has of the cluster's secrets, and the id of the cluster, 32 hex digits. */
export interface ClusterSecret {
  cluster: string
  masterSeed: Uint8Array
  random: RandomBytes
}

/** What reading takes of it. */
export type ClusterKeys = Pick<ClusterSecret, 'cluster' | 'masterSeed'>

const TITLE = 'strandfast-segment/v2'
const MAC_KEY = 'strandfast/cluster-segment/v1'
const PURPOSE = 'strandfast/cluster-state/v1'

/**
 * Lays out a segment with changes of rows.
 * @param secret and commitments of erased records among the blocks; those that come with it when absent
 */
export function encodeClusterSegment(
  about: ClusterHeader,
  changes: readonly RowChange[],
  secret: ClusterSecret & { commitmentOf?: CommitmentOf },
): ClusterSegment {
  const { cluster, masterSeed, random, commitmentOf = commitmentsIn(changes) } = secret
  const blocks = encodeBlocks(
    changes.filter(({ table }) => bodied.has(table)),
    commitmentOf,
  )
  const rows = bytesOf(changes.filter(({ table }) => !bodied.has(table)))
  const owner = ownerOf(cluster, about)
  const state = rows.length === 0 ? null : seal(masterSeed, { purpose: PURPOSE, owner, secret: rows }, random)
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

/** A segment that was read. */
export interface ReadSegment {
  about: ClusterHeader
  hash: Buffer
  changes: RowChange[]
}

/** How a segment is read. */
export interface SegmentReading extends ClusterKeys {
  /** The blocks alone, where a checkpoint has the other rows. */
  what?: 'whole' | 'blocks'
  /** Computes the hash of each record again. */
  check?: RecordCheck | undefined
}

/**
 * Reads a segment of which all rows are given, in order.
 * @throws Error where it is not what a node of this cluster with this master seed wrote
 */
export function decodeClusterSegment(
  rows: readonly SegmentRow[],
  { what = 'whole', check, ...keys }: SegmentReading,
): ReadSegment {
  const [first] = rows
  assert(first !== undefined, 'a segment has a row')
  const { about, stateDigest, blocksDigest } = openHeader(first, keys)
  if (what === 'whole') notHistory(about, first)
  const owner = ownerOf(keys.cluster, about)
  const state = what === 'whole' ? openState(rows, { stateDigest, owner, masterSeed: keys.masterSeed }) : []
  const other = (cause?: unknown) => {
    const why = cause instanceof Error ? `: ${cause.message}` : ''
    return wrong(first, `holds other rows than its header names${why}`)
  }
  let found: ReturnType<typeof decodeBlocks>
  try {
    check?.segment(state)
    found = decodeBlocks(Buffer.concat(rows.map(({ blocks }) => blocks)), (record, commitment) =>
      check?.record(record, commitment),
    )
  } catch (error) {
    throw other(error)
  }
  if (found.digest !== blocksDigest) throw other()
  return { about, hash: Buffer.from(first.hash), changes: [...found.blocks, ...state] }
}

/** The row of a segment that has its header. */
export type HeaderRow = Pick<SegmentRow, 'segment' | 'hash' | 'header'>

/** What the header of a segment says. @throws Error as `decodeClusterSegment` does */
export function headerOf(row: HeaderRow, keys: ClusterKeys): ClusterHeader {
  return openHeader(row, keys).about
}

/** @throws Error where a segment is read as a whole whose other rows are in a checkpoint: without that, its agents would begin again */
export function notHistory({ kind }: ClusterHeader, row: HeaderRow): void {
  if (kind === 'history') throw wrong(row, 'has its other rows in a checkpoint, which is not there')
}

/** Opens the sealed rows of a segment. @param sealing their digest, whose they are, and the master seed */
export function openState(
  rows: readonly SegmentRow[],
  { stateDigest, owner, masterSeed }: { stateDigest: string; owner: Buffer; masterSeed: Uint8Array },
): RowChange[] {
  const sealed = Buffer.concat(rows.map(({ state }) => state ?? Buffer.alloc(0)))
  const isGone = sealed.length === 0
  if (hash('sha256', sealed) !== stateDigest)
    throw wrong(
      rows[0],
      isGone
        ? 'has its rows in a checkpoint, which came meanwhile'
        : 'holds other rows than its header names',
    )
  if (isGone) return []
  return [...decodeChanges(unseal(masterSeed, { purpose: PURPOSE, owner }, sealed))]
}

/** Commitments of records that came and were erased in one segment, or were imported erased. */
function commitmentsIn(changes: readonly RowChange[]): CommitmentOf {
  const rows = changes.filter(({ table }) => table === tableIds.erasures)
  const values = new Map(rows.map(({ key, value }) => [key.toString('latin1'), value]))
  return ({ agentNo, seq }) =>
    values.get(runKey(agentNo, seq).toString('latin1'))?.subarray(0, -ROW_CHECKSUM_BYTES)
}

/** What is the matter with a segment. */
export function wrong(row: Pick<SegmentRow, 'segment'> | undefined, what: string): Error {
  return new Error(`Segment ${row?.segment} of the cluster’s log ${what}`)
}

function openHeader(row: HeaderRow, { cluster, masterSeed }: ClusterKeys) {
  const read = readHeader(row, { masterSeed, title: TITLE })
  const of = read.field('cluster')
  if (of !== cluster) throw wrong(row, `is of another cluster, ${of}`)
  return read
}

/** Reads a header of a form. @throws Error where it is not what a node with this master seed wrote there */
export function readHeader(row: HeaderRow, { masterSeed, title }: { masterSeed: Uint8Array; title: string }) {
  if (!equal(macOf(masterSeed, row.header), row.hash))
    throw wrong(row, 'was not written by a node with this master seed')
  const lines = row.header.split('\n')
  const fields = new Map(
    lines.slice(1).map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
  )
  const field = (name: string): string => {
    const value = fields.get(name)
    if (value === undefined || lines[0] !== title) throw wrong(row, 'has a header of another version')
    return value
  }
  const kind = kinds.find((known) => known === field('kind'))
  if (kind === undefined) throw wrong(row, 'is of a kind of another version')
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
  if (about.segment !== row.segment) throw wrong(row, 'stands in the place of another one')
  return { about, field, stateDigest: field('state'), blocksDigest: field('blocks') }
}

/** Rows of at most so many bytes each; one at least. */
function partsOf(blocks: Buffer, state: Buffer | null): SegmentPart[] {
  const bytes = limits.clusterPartBytes
  const count = Math.max(1, Math.ceil(blocks.length / bytes), Math.ceil((state?.length ?? 0) / bytes))
  return Array.from({ length: count }, (_none, part) => {
    const [from, to] = [part * bytes, (part + 1) * bytes]
    return { blocks: blocks.subarray(from, to), state: state?.subarray(from, to) ?? null }
  })
}

function ownerOf(cluster: string, { shard, segment }: Pick<ClusterHeader, 'shard' | 'segment'>): Buffer {
  return Buffer.from(`${cluster} ${shard} ${segment}`)
}

function macOf(masterSeed: Uint8Array, header: string): Buffer {
  return createHmac('sha256', deriveSeed(masterSeed, MAC_KEY)).update(header).digest()
}

function equal(one: Buffer, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
