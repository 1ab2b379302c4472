import type { Moment } from './types.js'

/** A moment as a query parameter. @throws RangeError for an invalid date */
export function momentText(moment: Moment): string {
  return moment instanceof Date ? moment.toISOString() : String(moment)
}
