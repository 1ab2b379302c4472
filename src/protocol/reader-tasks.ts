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

export const isReaderSettings = fields({ dataDir: isText })
export type ReaderSettings = Checked<typeof isReaderSettings>

/** One page of an export: lines from `fromSeq` to at most `toSeq`, about `bytesMax` bytes of them. */
export interface ExportPageTask {
  shard: number
  agentNo: number
  strand: string
  /** Every key of the strand, by its number in the records. */
  publicKeys: string[]
  fromSeq: number
  toSeq: number
  bytesMax: number
  /** For a user: what its read policies allow. Other records are withheld. */
  readable?: GrantText
}

/** Whole export lines in UTF-8, each ended by LF; the seq of the next page; the hash of the last record. */
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

/** The root of a tree, and the sibling hashes of the path to it, hex. */
const isInclusion = fields({ root: isText, path: listOf(isText) })
export type InclusionFound = Checked<typeof isInclusion>

export interface RecordTask {
  shard: number
  agentNo: number
  seq: number
}

/** A consistency proof from the tree of the first `from` records to that of the first `size`. */
export interface ConsistencyTask extends TreeTask {
  from: number
}

/** The tree hashes of the proof and both roots, hex. */
const isConsistency = fields({ path: listOf(isText), fromRoot: isText, toRoot: isText })
export type ConsistencyFound = Checked<typeof isConsistency>

/** The progress of the check of an import. */
export interface ImportPosition extends ExportPosition {
  /** Key rotations so far. */
  rotations: number
}

/** Whole lines of an imported export, after the manifest and the lines that were already checked. */
export interface ImportCheckTask {
  manifest: Manifest
  /** Absent at the first record. */
  position?: ImportPosition
  /** The agents to which the caller's key is limited; empty means no limit. */
  agents: readonly string[]
  lines: Uint8Array
}

/** The same with lines in parts, and the file that stages checked records. */
export interface ImportStageTask extends Omit<ImportCheckTask, 'lines'> {
  stage: string
  lines: readonly Uint8Array[]
}

/** The staged lines, the first fault, or that the disk is full. */
export type ImportStaged =
  | (Omit<Extract<ImportChecked, { ended: boolean }>, 'parts'> & { staged: boolean })
  | Extract<ImportChecked, { fault: unknown }>
  | { full: true }

/** The result of a check: the progress of valid lines, or the first fault. */
export type ImportChecked =
  | {
      /** Empty if no record can be committed yet. */
      parts: readonly CheckedRecords[]
      position: ImportPosition
      linesTaken: number
      bytesTaken: number
      /** Whether the lines included a valid trailer. */
      ended: boolean
    }
  | {
      /**
       * `line` counts from 0 within these lines; `seq` is that of the faulty or expected record; `forbidden` if
       * another key could import the record.
       */
      fault: { line: number; seq: number; reason: string; forbidden: boolean }
    }

export interface ReaderTasks {
  exportPage: { task: ExportPageTask; found: ExportPage }
  /** The seq of the record whose signature covers the record. */
  sealEnd: { task: RecordTask; found: number }
  /** Hex. */
  treeRoot: { task: TreeTask; found: string }
  inclusion: { task: InclusionTask; found: InclusionFound }
  consistency: { task: ConsistencyTask; found: ConsistencyFound }
  importCheck: { task: ImportStageTask; found: ImportStaged }
}

export const isPlace: Check<ChainPlace> = members<ChainPlace>({
  seq: isNumber,
  head: optional(isText),
  hlc: isText,
  key: isText,
  sealAwaited: optional(isNumber),
})

export const isSubtree: Check<Subtree> = members<Subtree>({ level: isNumber, rootHex: isText })

const isPosition = members<ImportPosition>({
  rotations: isNumber,
  place: isPlace,
  records: isNumber,
  subtrees: listOf(isSubtree),
})

const isFull: Check<true> = (value) => value === true

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
    fields({ fault: fields({ line: isNumber, seq: isNumber, reason: isText, forbidden: isFlag }) }),
    fields({ full: isFull }),
  ),
}

/** A task for the pool of the thread or node that has the store. */
export interface ReadCall {
  name: keyof ReaderTasks
  task: ReaderTasks[keyof ReaderTasks]['task']
  /** The id of the principal. */
  caller: string
}

export interface Readers {
  run(call: ReadCall): Promise<unknown>
}

export type Read = <Name extends keyof ReaderTasks>(
  name: Name,
  task: ReaderTasks[Name]['task'],
) => Promise<ReaderTasks[Name]['found']>

/** Returns typed reads over readers for a caller. They throw RefusedError when the pool refuses the task. */
export function readsBy(readers: Readers, caller: string): Read {
  return async (name, task) => answerOf(readerAnswers[name], await readers.run({ name, task, caller }))
}
