import { join } from 'node:path'
import { workerData } from 'node:worker_threads'
import { assert } from '../src/base/assert.js'
import { asBuffer } from '../src/base/bytes.js'
import { TextBuffer } from '../src/base/text-buffer.js'
import {
  isReaderSettings,
  type ConsistencyFound,
  type ConsistencyTask,
  type ExportPage,
  type ExportPageTask,
  type ImportStaged,
  type ImportStageTask,
  type InclusionTask,
  type TreeTask,
} from '../src/protocol/reader-tasks.js'
import { genesisType, keyRotateType } from '../src/strand/record-type.js'
import { consistencyPath, inclusionPath, treeRoot as rootOf, type LeafReader } from '../src/strand/merkle.js'
import { recordLine } from '../src/strand/strand-export.js'
import { withIndex } from './import/record-index.js'
import { checkLines } from './import/check.js'
import { stagePart } from './import/part.js'
import { allows } from '../src/auth/row-policy.js'
import { grantOfText } from '../src/auth/grant.js'
import type { Environment } from './store/environment.js'
import { openEnvironment } from './store/open-environment.js'
import { exportedRecord } from './store/exported-record.js'
import type { StoredRecord } from './store/tables/record-codec.js'
import { recordBySeq, recordHashes, recordsFrom } from './store/tables/records.js'

/*
 * Long reads, in a thread of the pool: pure functions over a read-only view of the shards' stores. Each task
 * is one page, so that no snapshot is open for long: LMDB cannot reuse pages that a snapshot still sees.
 */

/** Bytes for the last line of a page, which may exceed its limit. */
const LAST_LINE_BYTES = 4_096

const settings: unknown = workerData
assert(isReaderSettings(settings), 'a reader is given its data directory')
const { dataDir } = settings
const environments = new Map<number, Environment>()

/** Does nothing. Its result shows the pool that a thread could be started. */
export function begin(): void {}

/** Export lines from `fromSeq` on: as many whole lines as fit into a page. */
export function exportPage(task: ExportPageTask): ExportPage {
  const environment = fresh(task.shard)
  const page = new TextBuffer(task.bytesMax + LAST_LINE_BYTES)
  let bytes = 0
  let nextSeq = task.fromSeq
  let lastHash = ''
  for (const record of recordsFrom(environment, task.agentNo, { fromSeq: task.fromSeq, order: 'asc' })) {
    if (record.seq > task.toSeq || bytes >= task.bytesMax) break
    assert(record.seq === nextSeq, 'a strand has no gaps')
    const before = page.length
    page.addText(`${exportLine(record, task)}\n`)
    // A withheld body was read, too.
    bytes += Math.max(page.length - before, record.body.length)
    nextSeq = record.seq + 1
    lastHash = record.hash
  }
  // The reply would contain all memory behind a view.
  return withSnapshotReleased(task.shard, { bytes: Buffer.from(page.bytes), nextSeq, lastHash })
}

/** The seq of the record whose signature covers the record at `seq`: the same or a later one. */
export function sealEnd({ shard, agentNo, seq }: { shard: number; agentNo: number; seq: number }): number {
  const record = recordBySeq(fresh(shard), agentNo, seq)
  assert(record !== undefined, 'the requested record exists')
  return withSnapshotReleased(shard, record.sealedBy ?? seq)
}

/** The root of the tree over the first `size` records, hex. */
export function treeRoot(task: TreeTask): string {
  return withSnapshotReleased(task.shard, asBuffer(rootOf(task.size, leafReader(task))).toString('hex'))
}

/** The root, and the inclusion proof of record `seq`, hex. */
export function inclusion(task: InclusionTask): { root: string; path: string[] } {
  const reader = leafReader(task)
  const path = inclusionPath(task.seq, task.size, reader)
  return withSnapshotReleased(task.shard, {
    root: asBuffer(rootOf(task.size, reader)).toString('hex'),
    path: path.map((hash) => asBuffer(hash).toString('hex')),
  })
}

/** A consistency proof from the root of the first `from` records to the root of the first `size`, hex. */
export function consistency(task: ConsistencyTask): ConsistencyFound {
  const reader = leafReader(task)
  const hex = (hash: Uint8Array) => asBuffer(hash).toString('hex')
  return withSnapshotReleased(task.shard, {
    path: consistencyPath(task.from, task.size, reader).map(hex),
    fromRoot: hex(rootOf(task.from, reader)),
    toRoot: hex(rootOf(task.size, reader)),
  })
}

/** Checks a part of an export for an import, and appends its records to the stage file. Reads no store. */
export function importCheck({ stage, lines, ...task }: ImportStageTask): ImportStaged {
  const checked = withIndex(stage, task.manifest.fromSeq, (find) =>
    checkLines({ ...task, lines: Buffer.concat(lines) }, find),
  )
  if ('fault' in checked) return checked
  const { parts, ...found } = checked
  if (!parts.every((part) => stagePart(stage, part))) return { full: true }
  return { ...found, staged: parts.length > 0 }
}

function leafReader({ shard, agentNo }: TreeTask): LeafReader {
  const environment = fresh(shard)
  return {
    leaves(start, end) {
      return recordHashes(environment, agentNo, { start, end })
    },
    subtree: (level, index) => environment.trees.find(agentNo, level, index),
  }
}

function exportLine(record: StoredRecord, { shard, strand, publicKeys, readable }: ExportPageTask): string {
  const key = publicKeys[record.keyIndex]
  assert(key !== undefined, 'the key of each exported record belongs to its strand')
  const { header, content } = exportedRecord(environmentOf(shard), record, { strand, key })
  const isOpen = readable === undefined || record.erased === true || namesKey(record.type)
  if (isOpen || allows(grantOfText(readable).policies, record)) return recordLine({ h: header, ...content })
  const { sig, sealedBy } = content
  return recordLine({ h: header, sig, sealedBy, withheld: true })
}

/** Whether a record introduces a key. Verifiers need its body, which contains only public data. */
function namesKey(type: string): boolean {
  return type === genesisType || type === keyRotateType
}

/** The current state of the shard's store. Without it, a task would see the snapshot of an earlier one. */
function fresh(shard: number): Environment {
  const environment = environmentOf(shard)
  environment.root.resetReadTxn()
  environment.runs.catchUp()
  return environment
}

/** The shard's store, in the snapshot of the current task. */
function environmentOf(shard: number): Environment {
  let environment = environments.get(shard)
  if (environment === undefined) {
    environment = openEnvironment(join(dataDir, `shard-${shard}`), 'read')
    environments.set(shard, environment)
  }
  return environment
}

/**
 * Returns the result of a task after releasing its snapshot. An idle thread would keep the snapshot until its
 * next task, and bodies that are erased in the meantime would stay in the file.
 */
function withSnapshotReleased<T>(shard: number, result: T): T {
  environmentOf(shard).root.resetReadTxn()
  return result
}
