import { hash } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { unseal } from '../../../src/strand/seal.js'
import { blockCount, hashAt } from '../tables/record-codec.js'
import { blockKey } from '../tables/tables.js'
import { type CheckpointPartPlace, checkpointPurpose, readCheckpointHead } from './cluster-checkpoint.js'
import { notHistory, openState, readHeader, wrong } from './cluster-segment.js'
import type { LogForm } from './cluster-reader.js'
import { decodeChanges, type RowChange } from '../log/row-change.js'
import { bodied } from '../log/table-ids.js'

/*
 * The form v1 of a log, for an upgrade alone. It names no cluster, and its header covers of the blocks their keys and the
 * hashes of their records as they are stored: what it says is checked once the stores are made (src/cli/cluster-upgrade.ts).
 */

const SEGMENT = 'strandfast-segment/v1'
const CHECKPOINT = 'strandfast-checkpoint/v1'

/** Reads the form v1. */
export const formerForm: LogForm = {
  segment(rows, { what = 'whole', masterSeed }) {
    const [first] = rows
    assert(first !== undefined, 'a segment has a row')
    const { about, stateDigest, blocksDigest } = readHeader(first, { masterSeed, title: SEGMENT })
    if (what === 'whole') notHistory(about, first)
    const blocks = [...decodeChanges(Buffer.concat(rows.map((row) => row.blocks)))]
    if (!blocks.every(isBlock) || digestOf(blocks) !== blocksDigest)
      throw wrong(first, 'holds other rows than its header names')
    const owner = Buffer.from(`${about.shard} ${about.segment}`)
    const state = what === 'whole' ? openState(rows, { stateDigest, owner, masterSeed }) : []
    return { about, hash: Buffer.from(first.hash), changes: [...blocks, ...state] }
  },
  header: (row, { masterSeed }) => readHeader(row, { masterSeed, title: SEGMENT }).about,
  checkpointHead: (head, { masterSeed }) => readCheckpointHead(head, { masterSeed, title: CHECKPOINT }).about,
  checkpointPart(named, state, { masterSeed }) {
    return [
      ...decodeChanges(unseal(masterSeed, { purpose: checkpointPurpose, owner: ownerOf(named) }, state)),
    ]
  },
}

/** A block with records, whose key is as long as that of each: so the digest stands for one list of them alone. */
function isBlock({ table, key, value }: RowChange): boolean {
  return (
    bodied.has(table) && key.length === blockKey(0).length && value !== undefined && blockCount(value) > 0
  )
}

function digestOf(blocks: readonly RowChange[]): string {
  const named = blocks.flatMap(({ key, value = Buffer.alloc(0) }) => [
    key,
    ...Array.from({ length: blockCount(value) }, (_none, at) => Buffer.from(hashAt(value, at), 'hex')),
  ])
  return hash('sha256', Buffer.concat(named))
}

function ownerOf({ shard, segment, part }: CheckpointPartPlace): Buffer {
  return Buffer.from(`${shard} ${segment} ${part}`)
}
