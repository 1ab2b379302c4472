import type { ExportPosition } from '../proof/export-check.js'
import type { Condition } from '../strand/condition.js'
import type { Manifest } from '../strand/strand-export.js'
import type { CheckedRecords } from './import-messages.js'

/** What a reader thread of the pool is started with. */
export interface ReaderSettings {
  dataDir: string
}

/** One page of an export: lines from `fromSeq` to at most `toSeq`, about `bytesMax` bytes of them. */
export interface ExportPageTask {
  shard: number
  agentNo: number
  strand: string
  /** Every key that the strand has had, by the number that records name it by. */
  publicKeys: string[]
  fromSeq: number
  toSeq: number
  bytesMax: number
  /** For a user: the conditions of its read policies; what none of them allows is withheld. */
  readable?: Condition[][]
}

/** Export lines, each ended by LF; `nextSeq` is where the next page begins. */
export interface ExportPage {
  /** Whole lines, UTF-8. */
  bytes: Uint8Array
  nextSeq: number
  /** Hash of the last record in the page. */
  lastHash: string
}

/** A tree over the first `size` records of a strand. */
export interface TreeTask {
  shard: number
  agentNo: number
  size: number
}

export interface InclusionTask extends TreeTask {
  seq: number
}

/** From the tree of the first `from` records to that of the first `size`. */
export interface ConsistencyTask extends TreeTask {
  from: number
}

/** Tree hashes and roots, hex. */
export interface ConsistencyFound {
  path: string[]
  fromRoot: string
  toRoot: string
}

/** Whole lines of an export that is imported, behind the manifest and what was checked before. */
export interface ImportCheckTask {
  manifest: Manifest
  /** Absent at the first record. */
  position?: ExportPosition
  lines: Uint8Array
}

/** The same, its lines in parts, with the file in which what is checked waits. */
export interface ImportStageTask extends Omit<ImportCheckTask, 'lines'> {
  stage: string
  lines: readonly Uint8Array[]
}

/** What was staged, or why not: the disk is full. */
export type ImportStaged =
  | (Omit<Extract<ImportChecked, { ended: boolean }>, 'records'> & { staged: boolean })
  | Extract<ImportChecked, { fault: unknown }>
  | { full: true }

/** What a check came to: how far it took the lines, or the first fault in them. */
export type ImportChecked =
  | {
      /** Absent when no record could be taken. */
      records?: CheckedRecords
      position: ExportPosition
      linesTaken: number
      bytesTaken: number
      /** The trailer was among them and is right. */
      ended: boolean
    }
  | {
      /** `line` counts from 0 within the lines given; `seq` is of the record that stands or was expected there. */
      fault: { line: number; seq: number; reason: string }
    }
