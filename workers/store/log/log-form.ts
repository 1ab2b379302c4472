import type { SegmentRow } from '../../../src/protocol/cluster-log-messages.js'
import {
  type CheckpointHead,
  type CheckpointPartPlace,
  decodeCheckpointHead,
  decodeCheckpointPart,
} from '../replica/cluster-checkpoint.js'
import {
  type ClusterHeader,
  type ClusterKeys,
  decodeClusterSegment,
  headerOf,
  type Reading,
  type ReadSegment,
} from '../replica/cluster-segment.js'
import type { RowChange } from './row-change.js'

/** The form in which a log is written; each function throws an Error for what a node of the cluster did not write. */
export interface LogForm {
  segment(rows: readonly SegmentRow[], reading: Reading): ReadSegment
  header(row: SegmentRow, keys: ClusterKeys): ClusterHeader
  checkpointHead(head: Uint8Array, keys: ClusterKeys): CheckpointHead
  checkpointPart(named: CheckpointPartPlace, state: Uint8Array, keys: ClusterKeys): RowChange[]
}

/** The form that nodes write and read. */
export const clusterForm: LogForm = {
  segment: decodeClusterSegment,
  header: headerOf,
  checkpointHead: decodeCheckpointHead,
  checkpointPart: decodeCheckpointPart,
}
