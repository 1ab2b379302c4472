import type { AgentStatusResponse } from '../../../client/index.js'
import type { ReadRecord } from '../../../proof/record.js'
import type { RecordRow } from './record-row.js'

/** A written record that can be changed, with the state of its agent. */
export interface ChangedRecord {
  status: AgentStatusResponse
  row: RecordRow
  record: ReadRecord
}
