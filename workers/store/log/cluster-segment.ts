import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits.js'
import type { RandomBytes } from '../../../src/base/random.js'
import type { SegmentPart, SegmentRewrite, SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import { deriveSeed } from '../../../src/strand/keys.js'
import { seal, unseal } from '../../../src/strand/seal.js'
import { blockCount, hashAt } from '../record-codec.js'
import { changeBytes, decodeChanges, encodeChanges, type RowChange } from './row-change.js'
import { tableIds } from './table-ids.js'

/*
 * A segment of a shard as the database of a cluster has it: a header of lines, whose HMAC under a key from the master seed
 * is the segment's hash; records in the clear, so that their bodies can be erased; all other rows sealed. The header names
 * the records by their hashes, which say what their bodies are, so it stays true when one is erased.
 *
 *   strandfast-segment/v1
 *   shard 3
 *   segment 17
 *   kind group
 *   node a 3                    who wrote it, and as which incarnation
 *   groups 40 2                 number of the last group in it, and how many they are
 *   next 57 1099511627776       numbers of the next blocks, of the log and of imported records
 *   prev 5b…                    hash of the segment before, 64 hex digits
 *   state 90…                   SHA-256 of the sealed rows
 *   blocks c1…                  SHA-256 over the blocks: key ‖ hashes of the records, each
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

/** What a node has of the cluster's secrets. */
export interface ClusterSecret {
  masterSeed: Uint8Array
  random: RandomBytes
}

const TITLE = 'strandfast-segment/v1'
const MAC_KEY = 'strandfast/cluster-segment/v1'
const PURPOSE = 'strandfast/cluster-state/v1'
/** Tables whose rows are records with their bodies. */
export const bodied: ReadonlySet<number> = new Set([tableIds.blocks, tableIds.importedBlocks])

/** Lays out a segment with changes of rows. */
export function encodeClusterSegment(
  about: ClusterHeader,
  changes: readonly RowChange[],
  { masterSeed, random }: ClusterSecret,
): ClusterSegment {
  const blocks = bytesOf(changes.filter(({ table }) => bodied.has(table)))
  const rows = bytesOf(changes.filter(({ table }) => !bodied.has(table)))
  const owner = ownerOf(about)
  const state = rows.length === 0 ? null : seal(masterSeed, { purpose: PURPOSE, owner, secret: rows }, random)
  const header = [
    TITLE,
    `shard ${about.shard}`,
    `segment ${about.segment}`,
    `kind ${about.kind}`,
    `node ${about.writer.node} ${about.writer.incarnation}`,
    `groups ${about.lastGroup} ${about.groups}`,
    `next ${about.next.blocks} ${about.next.imported}`,
    `prev ${about.prev.toString('hex')}`,
    `state ${hash('sha256', state ?? Buffer.alloc(0))}`,
    `blocks ${digestOf(blocks)}`,
    '',
  ].join('\n')
  return { header, hash: macOf(masterSeed, header), parts: partsOf(blocks, state) }
}

/**
 * Reads a segment of which all rows are given, in order.
 * @param what the blocks alone, where a checkpoint has the other rows
 * @throws Error where it is not what a node with this master seed wrote
 */
export function decodeClusterSegment(
  rows: readonly SegmentRow[],
  { masterSeed, what = 'whole' }: Pick<ClusterSecret, 'masterSeed'> & { what?: 'whole' | 'blocks' },
): { about: ClusterHeader; hash: Buffer; changes: RowChange[] } {
  const [first] = rows
  assert(first !== undefined, 'a segment has a row')
  const wrong = (what: string) => new Error(`Segment ${first.segment} of the cluster’s log ${what}`)
  const mac = macOf(masterSeed, first.header)
  if (!equal(mac, first.hash)) throw wrong('was not written by a node with this master seed')
  const { about, stateDigest, blocksDigest } = readHeader(first.header, wrong)
  const blocks = Buffer.concat(rows.map((row) => row.blocks))
  if (digestOf(blocks) !== blocksDigest) throw wrong('holds other rows than its header names')
  if (what === 'blocks') return { about, hash: mac, changes: [...decodeChanges(blocks)] }
  const sealed = Buffer.concat(rows.map(({ state }) => state ?? Buffer.alloc(0)))
  if (hash('sha256', sealed) !== stateDigest) {
    const isGone = sealed.length === 0
    throw wrong(
      isGone
        ? 'has its rows in a checkpoint, which came meanwhile'
        : 'holds other rows than its header names',
    )
  }
  const state =
    sealed.length === 0 ? sealed : unseal(masterSeed, { purpose: PURPOSE, owner: ownerOf(about) }, sealed)
  return { about, hash: mac, changes: [...decodeChanges(blocks), ...decodeChanges(Buffer.from(state))] }
}

/** The numbers that a header names. @throws Error where it is of another version */
export function nextOf({ header, segment }: Pick<SegmentRow, 'header' | 'segment'>): NextBlocks {
  return readHeader(header, (what) => new Error(`Segment ${segment} of the cluster’s log ${what}`)).about.next
}

/** What the header of a segment says. @throws Error where it is not what a node with this master seed wrote */
export function headerOf(
  { header, segment, hash: name }: Pick<SegmentRow, 'header' | 'segment' | 'hash'>,
  masterSeed: Uint8Array,
): ClusterHeader {
  const wrong = (what: string) => new Error(`Segment ${segment} of the cluster’s log ${what}`)
  if (!equal(macOf(masterSeed, header), name)) throw wrong('was not written by a node with this master seed')
  return readHeader(header, wrong).about
}

/** The rows of a segment with another state of one of its blocks, of the same length, as erased bodies leave it. */
export function rewrittenRows(rows: readonly SegmentRow[], change: RowChange): SegmentRewrite[] {
  const changes = changesOfBlocks(rows)
  const at = changes.findIndex((one) => isSameRow(one, change))
  assert(changes[at]?.value?.length === change.value?.length, 'an erased block keeps its length')
  changes[at] = change
  const after = bytesOf(changes)
  let from = 0
  return rows.map(({ segment, part, hash: name, blocks }) => {
    from += blocks.length
    return { segment, part, hash: name, blocks: after.subarray(from - blocks.length, from) }
  })
}

/** A block as the rows of its segment have it. */
export function blockIn(rows: readonly SegmentRow[], row: Pick<RowChange, 'table' | 'key'>): Buffer {
  const found = changesOfBlocks(rows).find((one) => isSameRow(one, row))?.value
  assert(found !== undefined, 'a block is in the segment with which it came')
  return found
}

function changesOfBlocks(rows: readonly SegmentRow[]): RowChange[] {
  return [...decodeChanges(Buffer.concat(rows.map(({ blocks }) => blocks)))]
}

function isSameRow(one: Pick<RowChange, 'table' | 'key'>, other: Pick<RowChange, 'table' | 'key'>): boolean {
  return one.table === other.table && one.key.equals(other.key)
}

function readHeader(header: string, wrong: (what: string) => Error) {
  const lines = header.split('\n')
  const fields = new Map(
    lines.slice(1).map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
  )
  const field = (name: string): string => {
    const value = fields.get(name)
    if (value === undefined || lines[0] !== TITLE) throw wrong('has a header of another version')
    return value
  }
  const kind = kinds.find((known) => known === field('kind'))
  if (kind === undefined) throw wrong('is of a kind of another version')
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
  return { about, stateDigest: field('state'), blocksDigest: field('blocks') }
}

/** Over the hashes of records, not their bytes: an erased body leaves it as it was. */
function digestOf(blocks: Buffer): string {
  const told: Buffer[] = []
  for (const { key, value } of decodeChanges(blocks)) {
    told.push(key)
    if (value === undefined) continue
    const count = blockCount(value)
    for (let position = 0; position < count; position++)
      told.push(Buffer.from(hashAt(value, position), 'hex'))
  }
  return hash('sha256', Buffer.concat(told))
}

function bytesOf(changes: readonly RowChange[]): Buffer {
  const bytes = Buffer.allocUnsafe(changes.reduce((sum, change) => sum + changeBytes(change), 0))
  encodeChanges(changes).write(bytes)
  return bytes
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

function ownerOf({ shard, segment }: Pick<ClusterHeader, 'shard' | 'segment'>): Buffer {
  return Buffer.from(`${shard} ${segment}`)
}

function macOf(masterSeed: Uint8Array, header: string): Buffer {
  return createHmac('sha256', deriveSeed(masterSeed, MAC_KEY)).update(header).digest()
}

function equal(one: Buffer, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
