import type { GrantText } from '../auth/grant.js'
import {
  anyOf,
  type Check,
  type Checked,
  fields,
  isBytes,
  isFlag,
  isNumber,
  isText,
  listOf,
  members,
  optional,
} from '../base/shape.js'
import type { ChainPlace } from '../proof/chain-check.js'
import type { ExportPosition } from '../proof/export-check.js'
import type { Subtree } from '../proof/tree.js'
import type { Manifest } from '../strand/strand-export.js'
import type { CheckedRecords } from './import-messages.js'
import { answerOf, type TaskAnswers } from './pool-tasks.js'

/** What a reader thread of the pool is started with. */
export const isReaderSettings = fields({ dataDir: isText })
export type ReaderSettings = Checked<typeof isReaderSettings>

/** One page of an export: lines from `fromSeq` to at most `toSeq`, about `bytesMax` bytes of them. */
export interface ExportPageTask {
  shard: number
  agentNo: number
  strand: string
  /** Every key that the strand has had, by the number in its records. */
  publicKeys: string[]
  fromSeq: number
  toSeq: number
  bytesMax: number
  /** For a user: what its read policies allow; other records are withheld. */
  readable?: GrantText
}

/** Export lines, whole ones in UTF-8, each ended by LF; where the next page begins; and the hash of the last record. */
const isExportPage = fields({ bytes: isBytes, nextSeq: isNumber, lastHash: isText })
export type ExportPage = Checked<typeof isExportPage>

/** A tree over the first `size` records of a strand. */
export interface TreeTask {
  shard: number
  agentNo: number
  size: number
}

export interface InclusionTask extends TreeTask {
  seq: number
}

/** The root of a tree, and the sibling hashes that lead to it, hex. */
const isInclusion = fields({ root: isText, path: listOf(isText) })
export type InclusionFound = Checked<typeof isInclusion>

/** One record of a strand. */
export interface RecordTask {
  shard: number
  agentNo: number
  seq: number
}

/** From the tree of the first `from` records to that of the first `size`. */
export interface ConsistencyTask extends TreeTask {
  from: number
}

/** Tree hashes and roots, hex. */
const isConsistency = fields({ path: listOf(isText), fromRoot: isText, toRoot: isText })
export type ConsistencyFound = Checked<typeof isConsistency>

/** Whole lines of an export that is imported, after the manifest and the lines that were checked before. */
export interface ImportCheckTask {
  manifest: Manifest
  /** Absent at the first record. */
  position?: ExportPosition
  lines: Uint8Array
}

/** The same, its lines in parts, with the file in which checked records wait. */
export interface ImportStageTask extends Omit<ImportCheckTask, 'lines'> {
  stage: string
  lines: readonly Uint8Array[]
}

/** What was staged, or why not: the disk is full. */
export type ImportStaged =
  | (Omit<Extract<ImportChecked, { ended: boolean }>, 'records'> & { staged: boolean })
  | Extract<ImportChecked, { fault: unknown }>
  | { full: true }

/** The result of a check: how far the lines are valid, or the first fault in them. */
export type ImportChecked =
  | {
      /** Absent when no record can be committed yet. */
      records?: CheckedRecords
      position: ExportPosition
      linesTaken: number
      bytesTaken: number
      /** The trailer was among them and is valid. */
      ended: boolean
    }
  | {
      /** `line` counts from 0 within these lines; `seq` is that of the record that is or was expected there. */
      fault: { line: number; seq: number; reason: string }
    }

/** The tasks of a reader: what each is given, and what it answers. */
export interface ReaderTasks {
  exportPage: { task: ExportPageTask; found: ExportPage }
  /** Finds the seq of the record whose signature covers the record. */
  sealEnd: { task: RecordTask; found: number }
  /** Hex. */
  treeRoot: { task: TreeTask; found: string }
  inclusion: { task: InclusionTask; found: InclusionFound }
  consistency: { task: ConsistencyTask; found: ConsistencyFound }
  importCheck: { task: ImportStageTask; found: ImportStaged }
}

/** Whether a value is a place in a chain. */
export const isPlace: Check<ChainPlace> = members<ChainPlace>({
  seq: isNumber,
  head: optional(isText),
  hlc: isText,
  key: isText,
  sealAwaited: optional(isNumber),
})

/** Whether a value is the root of a part of a tree. */
export const isSubtree: Check<Subtree> = members<Subtree>({ level: isNumber, rootHex: isText })

const isPosition = members<ExportPosition>({
  place: isPlace,
  records: isNumber,
  subtrees: listOf(isSubtree),
})

const isFull: Check<true> = (value) => value === true

/** Checks of the answers. */
export const readerAnswers: TaskAnswers<ReaderTasks> = {
  exportPage: isExportPage,
  sealEnd: isNumber,
  treeRoot: isText,
  inclusion: isInclusion,
  consistency: isConsistency,
  importCheck: anyOf(
    members<Extract<ImportStaged, { ended: boolean }>>({
      position: isPosition,
      linesTaken: isNumber,
      bytesTaken: isNumber,
      ended: isFlag,
      staged: isFlag,
    }),
    fields({ fault: fields({ line: isNumber, seq: isNumber, reason: isText }) }),
    fields({ full: isFull }),
  ),
}

/** A task on its way to the pool that has the store, in this thread, another one or another node. */
export interface ReadCall {
  name: keyof ReaderTasks
  task: ReaderTasks[keyof ReaderTasks]['task']
}

/** Carries tasks to a pool of readers. */
export interface Readers {
  /** True when another task would be refused. */
  isFull(): boolean | Promise<boolean>
  run(call: ReadCall): Promise<unknown>
}

/** Long reads by their names, over what carries them. */
export type Read = <Name extends keyof ReaderTasks>(
  name: Name,
  task: ReaderTasks[Name]['task'],
) => Promise<ReaderTasks[Name]['found']>

/** @throws RefusedError when the pool refuses the task */
export function readsBy(readers: Readers): Read {
  return async (name, task) => answerOf(readerAnswers[name], await readers.run({ name, task }))
}
