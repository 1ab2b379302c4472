import { fields, isNumber } from '../../../src/base/shape.js'
import type { SetAside } from '../set-aside.js'
import type { CheckedTable } from './checked-table.js'
import type { ScanBudget } from './scan-budget.js'
import { jsonOf } from './tables.js'

const isExpiring = fields({ expiresAtMs: isNumber })

/**
 * Whether a row has expired, for a sweep within a commit. A row that cannot be read is set aside, so that the
 * commit does not fail. The budget is reduced by the bytes of the row. The key of the expiry need not be checked, because the row itself has the time.
 */
export function isExpired(
  table: CheckedTable,
  key: Buffer,
  { nowMs, setAside, budget }: { nowMs: number; setAside: SetAside; budget: ScanBudget },
): boolean {
  try {
    const bytes = table.get(key)
    if (bytes === undefined) return false
    budget.bytes -= bytes.length
    const row = jsonOf(bytes)
    if (row === undefined) throw new Error('It is not JSON, so it does not expire')
    return isExpiring(row) && row.expiresAtMs <= nowMs
  } catch (error) {
    setAside.add(`expired row ${key.toString('hex')}`, error)
    return false
  }
}
