import { appendFileSync } from 'node:fs'
import type { CheckedRecords } from '../../src/protocol/import-messages.js'
import { partHead } from '../../src/protocol/import-parts.js'

/**
 * Puts a part behind those that wait already. It is not synced: after a crash the export is sent again.
 * @returns false where the disk has no room for it
 */
export function stagePart(path: string, records: CheckedRecords): boolean {
  try {
    appendFileSync(path, partHead(records), { mode: 0o600 })
    appendFileSync(path, records.chunk)
    return true
  } catch (error) {
    if (isFull(error)) return false
    throw error
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')
}
