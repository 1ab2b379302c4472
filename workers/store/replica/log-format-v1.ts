import { hash } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { unseal } from '../../../src/strand/seal.js'
import { blockCount, hashAt } from '../tables/record-codec.js'
import { blockKey } from '../tables/tables.js'
import { type CheckpointPartId, checkpointPurpose, readCheckpointHead } from './cluster-checkpoint.js'
import { assertNotHistory, unsealState, readHeader, segmentError } from './cluster-segment.js'
import type { LogFormat } from './cluster-reader.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { blockTableIds } from '../log/table-ids.js'

/*
 * Format v1 of a log, which only the upgrade reads. It names no cluster, and its header covers only the keys
 * of the blocks and the stored hashes of their records. The upgrade checks the records after it has built the
 * stores (src/cli/cluster-upgrade.ts).
 */

const SEGMENT = 'strandfast-segment/v1'
const CHECKPOINT = 'strandfast-checkpoint/v1'

/** Decodes format v1. */
export const formatV1: LogFormat = {
  segment(rows, { what = 'whole', masterSeed }) {
    const [first] = rows
    assert(first !== undefined, 'a segment has a row')
    const { about, stateDigest, blocksDigest } = readHeader(first, { masterSeed, title: SEGMENT })
    if (what === 'whole') assertNotHistory(about, first)
    const blocks = [...decodeChanges(Buffer.concat(rows.map((row) => row.blocks)))]
    if (!blocks.every(isBlock) || digestOf(blocks) !== blocksDigest)
      throw segmentError(first, 'has rows that do not match its header')
    const owner = Buffer.from(`${about.shard} ${about.segment}`)
    const state = what === 'whole' ? unsealState(rows, { stateDigest, owner, masterSeed }) : []
    return { about, hash: Buffer.from(first.hash), changes: [...blocks, ...state] }
  },
  header: (row, { masterSeed }) => readHeader(row, { masterSeed, title: SEGMENT }).about,
  checkpointHead: (head, { masterSeed }) => readCheckpointHead(head, { masterSeed, title: CHECKPOINT }).about,
  checkpointPart(id, state, { masterSeed }) {
    return [...decodeChanges(unseal(masterSeed, { purpose: checkpointPurpose, owner: ownerOf(id) }, state))]
  },
}

/**
 * Checks a block with records. All keys have the same length, so that each digest matches only one list of
 * blocks.
 */
function isBlock({ table, key, value }: RowChange): boolean {
  return (
    blockTableIds.has(table) &&
    key.length === blockKey(0).length &&
    value !== undefined &&
    blockCount(value) > 0
  )
}

function digestOf(blocks: readonly RowChange[]): string {
  const digested = blocks.flatMap(({ key, value = Buffer.alloc(0) }) => [
    key,
    ...Array.from({ length: blockCount(value) }, (_none, at) => Buffer.from(hashAt(value, at), 'hex')),
  ])
  return hash('sha256', Buffer.concat(digested))
}

function ownerOf({ shard, segment, part }: CheckpointPartId): Buffer {
  return Buffer.from(`${shard} ${segment} ${part}`)
}
