import { limits } from '../../../src/base/limits/limits.js'

/** How much a sweep or a page may still read; it ends before the next row when either is used up. */
export interface ScanBudget {
  rows: number
  bytes: number
}

export function scanBudget(rows: number): ScanBudget {
  return { rows, bytes: limits.scannedRowBytesMax }
}

/** Takes a row, of which the reader subtracts the bytes. @returns false if the scan ends before it */
export function takeRow(budget: ScanBudget): boolean {
  if (budget.rows <= 0 || budget.bytes <= 0) return false
  budget.rows--
  return true
}
