import { appendFileSync } from 'node:fs'
import { isLackOfSpace } from '../../src/base/durable-file.js'
import type { CheckedRecords } from '../../src/protocol/import-messages.js'
import { partHead } from '../../src/protocol/import-parts.js'

/**
 * Appends a part to the stage file. It is not synced: after a crash the export has to be sent again.
 * @returns false when the disk has no room for it
 */
export function stagePart(path: string, records: CheckedRecords): boolean {
  try {
    appendFileSync(path, partHead(records), { mode: 0o600 })
    appendFileSync(path, records.chunk)
    return true
  } catch (error) {
    if (isLackOfSpace(error)) return false
    throw error
  }
}
