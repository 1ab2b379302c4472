import type { StreamEvent } from '../../src/protocol/stream-messages.js'
import { formatHlc } from '../../src/strand/hlc.js'
import { headsType, isSystemType } from '../../src/strand/record-type.js'
import { streamEventData } from '../../src/wire/render.js'
import type { StoredRecord } from '../store/tables/record-codec.js'

export function streamEvent(agent: string, record: StoredRecord): StreamEvent {
  const system = isSystemType(record.type) && ({ isSystem: true } as const)
  return {
    agent,
    seq: record.seq,
    hlc: formatHlc(record.hlc),
    ...system,
    data: streamEventData(agent, record),
  }
}

/** Whether a record can be sent to streams: erased records are not, nor heads, which the log has every second. */
export function isStreamed(record: StoredRecord): boolean {
  return record.type !== headsType && record.erased !== true
}
